//! The owner of a container, and whether that run is still alive.

use super::proc_stat::{has_ended, start_time};
use std::fs;

/// The identity of one running harness process, written on everything it starts. A pid alone could
/// be reused; with its start time, the boot and the pid namespace it names exactly one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    machine: String,
    boot: String,
    pid_namespace: String,
    pid: u32,
    started: String,
}

impl Owner {
    /// Returns the identity of this process.
    pub fn current() -> Owner {
        let pid = std::process::id();
        Owner {
            machine: machine(),
            boot: boot(),
            pid_namespace: pid_namespace(),
            pid,
            started: start_time(pid).unwrap_or_default(),
        }
    }

    pub fn to_label(&self) -> String {
        [
            self.machine.as_str(),
            &self.boot,
            &self.pid_namespace,
            &self.pid.to_string(),
            &self.started,
        ]
        .join("/")
    }

    pub fn from_label(label: &str) -> Option<Owner> {
        let parts: Vec<&str> = label.split('/').collect();
        let [machine, boot, pid_namespace, pid, started] = parts[..] else {
            return None;
        };
        Some(Owner {
            machine: machine.to_owned(),
            boot: boot.to_owned(),
            pid_namespace: pid_namespace.to_owned(),
            pid: pid.parse().ok()?,
            started: started.to_owned(),
        })
    }

    /// Returns whether a pid that it noted means the same process to us: after another boot, or in
    /// another pid namespace, the pid may be that of any process.
    pub fn shares_our_pids(&self) -> bool {
        self.is_of_this_boot() && self.pid_namespace == pid_namespace()
    }

    fn is_of_this_boot(&self) -> bool {
        !self.boot.is_empty() && self.boot == boot()
    }

    /// Returns whether it ran before this machine's last boot. Machines that were copied from one
    /// image may share the machine id, and each has boots of its own; so the host name has to be
    /// the same as well. An owner whose machine or boot is unknown matches nothing.
    fn is_of_an_earlier_boot(&self) -> bool {
        let both = [&self.boot, &boot()];
        let are_known = both.iter().all(|boot| !boot.is_empty()) && !self.machine.is_empty();
        are_known && self.machine == machine() && self.boot != boot()
    }

    /// Returns true only if it is certain. An owner on another machine, in another pid namespace of
    /// this boot, or that cannot be looked at may well be alive and is left alone.
    pub fn is_certainly_dead(&self) -> bool {
        self.is_of_an_earlier_boot() || self.shares_our_pids() && has_ended(self.pid, &self.started)
    }
}

/// Returns the machine id and the host name; empty if either is unknown.
fn machine() -> String {
    let id = first_line("/etc/machine-id");
    let host = first_line("/proc/sys/kernel/hostname");
    let both = id.zip(host).map(|(id, host)| format!("{id}@{host}"));
    // It becomes a part of a label, and slashes separate the parts.
    both.unwrap_or_default().replace('/', "_")
}

fn boot() -> String {
    first_line("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

fn pid_namespace() -> String {
    fs::read_link("/proc/self/ns/pid")
        .map(|link| link.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn first_line(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_reads_back() {
        let owner = Owner::current();
        assert!(!owner.is_certainly_dead() && owner.shares_our_pids());
        assert_eq!(Owner::from_label(&owner.to_label()), Some(owner));
        assert_eq!(Owner::from_label("somebody else's label"), None);
    }

    #[test]
    fn a_reused_pid_is_not_the_owner() {
        let mut owner = Owner::current();
        owner.started = "1".into();
        assert!(owner.is_certainly_dead());
    }

    #[test]
    fn an_ended_process_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let mut owner = Owner::current();
        owner.pid = child.id();
        owner.started = start_time(child.id()).unwrap_or_default();
        child.wait().unwrap();
        assert!(owner.is_certainly_dead());
    }

    #[test]
    fn another_boot_is_dead_and_another_machine_is_left_alone() {
        let mut owner = Owner::current();
        owner.boot = "an earlier boot".into();
        assert!(owner.is_certainly_dead() && !owner.shares_our_pids());
        let (id, host) = owner.machine.split_once('@').unwrap();
        let of_one_image = format!("{id}@not-{host}");
        for machine in ["another machine", of_one_image.as_str(), ""] {
            owner.machine = machine.into();
            assert!(!owner.is_certainly_dead() && !owner.shares_our_pids());
        }
    }

    #[test]
    fn who_does_not_know_the_boot_is_left_alone() {
        let mut owner = Owner::current();
        owner.boot = String::new();
        owner.started = "1".into();
        assert!(!owner.is_certainly_dead() && !owner.shares_our_pids());
    }

    #[test]
    fn another_pid_namespace_is_left_alone() {
        let mut owner = Owner::current();
        owner.pid_namespace = "pid:[1]".into();
        owner.started = "1".into();
        assert!(!owner.is_certainly_dead() && !owner.shares_our_pids());
    }
}
