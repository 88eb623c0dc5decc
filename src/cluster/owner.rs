//! Whose container is this, and is that run still alive?

use super::proc_stat::start_time;
use std::fs;

/// The identity of one running harness process, written on everything it
/// starts. A pid alone would be reused; with its start time, the boot and the
/// pid namespace it names exactly one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    machine: String,
    boot: String,
    pid_namespace: String,
    pid: u32,
    started: String,
}

impl Owner {
    /// This process.
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

    /// Whether a pid that it noted can mean the same process to us: after another
    /// boot, or in another pid namespace, it is anybody's.
    pub fn shares_our_pids(&self) -> bool {
        let Owner {
            machine: its_machine,
            boot: its_boot,
            pid_namespace: its_namespace,
            ..
        } = self;
        *its_machine == machine() && *its_boot == boot() && *its_namespace == pid_namespace()
    }

    /// True only where it is certain: another machine, or another pid
    /// namespace of this boot, may well be alive and is left alone.
    pub fn is_certainly_dead(&self) -> bool {
        if self.machine != machine() {
            return false;
        }
        if self.boot != boot() {
            return true;
        }
        self.pid_namespace == pid_namespace()
            && start_time(self.pid).is_none_or(|started| started != self.started)
    }
}

fn machine() -> String {
    first_line("/etc/machine-id")
        .or_else(|| first_line("/proc/sys/kernel/hostname"))
        .unwrap_or_default()
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
        owner.machine = "another machine".into();
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
