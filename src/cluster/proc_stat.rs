//! Facts of the kernel about processes of this machine.

use super::ThreadState;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::fs;
use std::path::Path;

/// Returns when a process was started, in ticks since the boot: with its pid that names exactly one
/// process.
pub fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    field(&stat, 22).map(str::to_owned)
}

pub fn is_still(pid: u32, started: &str) -> bool {
    start_time(pid).is_some_and(|now| now == started)
}

/// Returns the state of every thread; none if the process has ended.
pub fn threads(pid: u32) -> Vec<ThreadState> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let states = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.ok()?.path().join("stat")).ok()?;
        if is_over(&stat) {
            return None;
        }
        field(&stat, 3)?.chars().next().map(ThreadState)
    });
    states.collect()
}

/// Returns whether the process has ended for certain: there is none with this pid, or it is another
/// one, or it is dead and its parent has not noticed yet. A process that cannot be looked at (a
/// `/proc` that hides other users' processes) may live.
pub fn has_ended(pid: u32, started: &str) -> bool {
    let Some(pid) = i32::try_from(pid).ok().filter(|pid| *pid > 0) else {
        return false;
    };
    let is_there = kill(Pid::from_raw(pid), None) != Err(Errno::ESRCH);
    !is_there || is_another_or_over(&Path::new("/proc").join(pid.to_string()), started)
}

/// Looks into the folder of a process that is there.
fn is_another_or_over(process: &Path, started: &str) -> bool {
    let Ok(stat) = fs::read_to_string(process.join("stat")) else {
        return false;
    };
    let is_another = field(&stat, 22).is_some_and(|now| now != started) && !started.is_empty();
    // The first thread may have ended before the others.
    is_another || is_over(&stat) && all_threads_are_over(process)
}

fn all_threads_are_over(process: &Path) -> bool {
    let Ok(tasks) = fs::read_dir(process.join("task")) else {
        return false;
    };
    let mut stats = tasks.map(|task| fs::read_to_string(task?.path().join("stat")));
    stats.all(|stat| match stat {
        Ok(stat) => is_over(&stat),
        // The thread ended as we looked.
        Err(error) => matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ESRCH)),
    })
}

/// Returns whether it is dead, and its parent has only not noticed yet.
fn is_over(stat: &str) -> bool {
    matches!(field(stat, 3), Some("Z" | "X"))
}

pub fn user(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().next()?.parse().ok()
}

/// Returns the living processes of the group that this process leads, or led before it ended.
pub fn group(leader: u32) -> Vec<u32> {
    let is_member = |process: &Relations| process.group == leader;
    let members = relations().into_iter().filter(is_member);
    members.map(|process| process.pid).filter(lives).collect()
}

/// Returns the living processes of this group and all that they have started, in whichever group
/// that is; but not what somebody has started who has ended since.
pub fn family(leader: u32) -> Vec<u32> {
    let mut others = relations();
    let mut family = Vec::new();
    loop {
        let is_kin =
            |process: &mut Relations| process.group == leader || family.contains(&process.parent);
        let found: Vec<u32> = others
            .extract_if(.., is_kin)
            .map(|process| process.pid)
            .collect();
        if found.is_empty() {
            return family.into_iter().filter(lives).collect();
        }
        family.extend(found);
    }
}

/// A process, who started it, and the leader of its group.
struct Relations {
    pid: u32,
    parent: u32,
    group: u32,
}

fn relations() -> Vec<Relations> {
    let Ok(all) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let pids = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let relations = pids.filter_map(|pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let number = |at: usize| field(&stat, at)?.parse().ok();
        Some(Relations {
            pid,
            parent: number(4)?,
            group: number(5)?,
        })
    });
    relations.collect()
}

fn lives(pid: &u32) -> bool {
    !threads(*pid).is_empty()
}

/// Returns a field of a `stat` file, counted from 1 as in proc(5). The second is a name in
/// parentheses that may itself hold spaces, so counting starts behind the last `)`.
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
    fn a_family_has_the_children_who_left_the_group() {
        use std::process::{Command, Stdio};
        let mut shell = Command::new("setsid");
        shell.args(["sh", "-c", "exec 3<&0; setsid sh -c 'cat; true' <&3 & wait"]);
        let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
        let give_up_at = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while family(shell.id()).len() < 3 {
            assert!(std::time::Instant::now() < give_up_at, "there are three");
            std::thread::yield_now();
        }
        assert_eq!(group(shell.id()), [shell.id()]);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        assert_eq!(family(shell.id()), [0u32; 0]);
    }

    #[test]
    fn a_process_that_nobody_has_waited_for_has_ended() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let started = start_time(child.id()).unwrap();
        let stat = format!("/proc/{}/stat", child.id());
        let give_up_at = std::time::Instant::now() + std::time::Duration::from_secs(30);
        while !is_over(&fs::read_to_string(&stat).unwrap()) {
            assert!(std::time::Instant::now() < give_up_at, "it ends");
            std::thread::yield_now();
        }
        assert!(has_ended(child.id(), &started), "a zombie");
        child.wait().unwrap();
        assert!(has_ended(child.id(), &started), "gone");
    }

    #[test]
    fn a_process_whose_first_thread_is_over_may_live() {
        let process = tempfile::tempdir().unwrap();
        let says = |thread: &str, letter: char| {
            let folder = process.path().join(thread);
            fs::create_dir_all(&folder).unwrap();
            let stat = format!("7 (x) {letter} 1 7 7 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 42 1 1");
            fs::write(folder.join("stat"), stat).unwrap();
        };
        let ended = || is_another_or_over(process.path(), "42");
        assert!(!ended(), "what cannot be read may live");
        says("", 'Z');
        assert!(!ended(), "whose threads cannot be read may live");
        says("task/7", 'Z');
        says("task/8", 'S');
        assert!(!ended(), "a thread lives");
        says("task/8", 'X');
        assert!(ended());
        says("", 'S');
        assert!(!ended() && is_another_or_over(process.path(), "41"));
    }

    #[test]
    fn this_process_has_threads_and_nobody_else_has_its_start() {
        let own = std::process::id();
        assert!(!threads(own).is_empty());
        let started = start_time(own).unwrap();
        assert!(is_still(own, &started));
        assert!(!has_ended(own, &started) && has_ended(own, "1"));
        assert!(!has_ended(own, ""), "when it was started is not known");
        assert!(!has_ended(0, "1") && !has_ended(u32::MAX, "1"), "no pids");
        assert_eq!(user(own), Some(nix::unistd::getuid().as_raw()));
        assert!(!is_still(own, "1"), "a reused pid is somebody else");
    }
}
