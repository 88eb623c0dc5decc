//! What the kernel says about processes of this machine.

use super::ThreadState;
use std::fs;

/// When a process was started, in ticks since the boot: with its pid it names
/// exactly one process.
pub fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    field(&stat, 22).map(str::to_owned)
}

/// Whether this is still the same process, dead or alive.
pub fn is_still(pid: u32, started: &str) -> bool {
    start_time(pid).is_some_and(|now| now == started)
}

/// The state of every thread; none where the process has ended.
pub fn threads(pid: u32) -> Vec<ThreadState> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let states = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        field(&stat, 3)?.chars().next().map(ThreadState)
    });
    // What is dead and only waits to be noticed is no thread any more.
    states
        .filter(|state| !matches!(state.0, 'Z' | 'X'))
        .collect()
}

/// The living processes of the group that this one leads, or led before it ended.
pub fn group(leader: u32) -> Vec<u32> {
    let Ok(all) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let is_member = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
        let group = stat.ok().and_then(|stat| field(&stat, 5)?.parse().ok());
        group == Some(leader) && !threads(*pid).is_empty()
    };
    pids.filter(is_member).collect()
}

/// A field of a `stat` file, counted from 1 as proc(5) does. The second is a
/// name in parentheses that may itself hold spaces, so counting starts behind
/// the last `)`.
fn field(stat: &str, number: usize) -> Option<&str> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_whitespace().nth(number.checked_sub(3)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_behind_the_name() {
        let stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 98765 1 1";
        assert_eq!(field(stat, 3), Some("S"));
        assert_eq!(field(stat, 5), Some("42"));
        assert_eq!(field(stat, 22), Some("98765"));
        assert_eq!(field("", 3), None);
        assert_eq!(field("1 (x) S", 22), None);
    }

    #[test]
    fn a_group_is_its_leader_and_what_that_has_started() {
        use std::os::unix::process::CommandExt;
        use std::process::{Command, Stdio};
        let mut shell = Command::new("sh");
        shell.args(["-c", "cat; true"]).stdin(Stdio::piped());
        let mut shell = shell.process_group(0).spawn().unwrap();
        let give_up_at = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while group(shell.id()).len() < 2 {
            assert!(std::time::Instant::now() < give_up_at, "there are two");
            std::thread::yield_now();
        }
        assert!(group(shell.id()).contains(&shell.id()));
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(group(shell.id()), [0u32; 0]);
    }

    #[test]
    fn this_process_has_threads_and_nobody_else_has_its_start() {
        let own = std::process::id();
        assert!(!threads(own).is_empty());
        let started = start_time(own).unwrap();
        assert!(is_still(own, &started));
        assert!(!is_still(own, "1"), "a reused pid is somebody else");
    }
}
