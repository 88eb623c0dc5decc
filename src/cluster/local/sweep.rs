//! What a run left behind that did not get to clean up.

use super::folder::RunFolder;
use crate::cluster::{Leftovers, Swept, proc_stat};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// A run that has just been begun may not have said yet whose it is.
const UNFINISHED_FOR: Duration = Duration::from_secs(60);
const END_DEADLINE: Duration = Duration::from_secs(10);
/// The end of a process that is not our child cannot be awaited.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Ends processes and removes folders of runs whose owners are certainly dead.
pub fn sweep(root: &Path, which: Leftovers) -> Swept {
    let mut swept = Swept::default();
    let Ok(runs) = fs::read_dir(root) else {
        return swept;
    };
    for run in runs.filter_map(Result::ok) {
        let folder = RunFolder { path: run.path() };
        let name = run.file_name().to_string_lossy().into_owned();
        let is_dead = match folder.owner() {
            Some(owner) => owner.is_certainly_dead(),
            None => is_old(&folder.path),
        };
        if !is_dead || (folder.is_kept() && which == Leftovers::OfDeadRuns) {
            continue;
        }
        for (pid, started) in folder.processes() {
            match end(pid, &started) {
                Ended::Now => swept.removed.push(format!("process {pid} of run {name}")),
                Ended::Before => {}
                Ended::Never => swept.stuck.push(format!(
                    "process {pid} of run {name} does not end; kill -9 {pid}"
                )),
            }
        }
        match folder.remove() {
            Ok(()) => swept.removed.push(folder.path.display().to_string()),
            Err(error) => {
                let path = folder.path.display();
                swept
                    .stuck
                    .push(format!("{path} cannot be removed: {error}"));
            }
        }
    }
    swept
}

enum Ended {
    Before,
    Now,
    Never,
}

/// Only the very process that was started then: its pid may be somebody else's.
fn end(pid: u32, started: &str) -> Ended {
    let is_there = || proc_stat::is_still(pid, started) && !proc_stat::threads(pid).is_empty();
    let Ok(raw) = i32::try_from(pid) else {
        return Ended::Before;
    };
    if !is_there() {
        return Ended::Before;
    }
    let pid = Pid::from_raw(raw);
    // One that stands still is let go on before it is ended.
    let _ = kill(pid, Signal::SIGCONT);
    let _ = killpg(pid, Signal::SIGKILL);
    let give_up_at = Instant::now() + END_DEADLINE;
    while is_there() {
        if Instant::now() >= give_up_at {
            return Ended::Never;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ended::Now
}

fn is_old(path: &Path) -> bool {
    let made = fs::metadata(path).and_then(|about| about.modified());
    made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > UNFINISHED_FOR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Owner;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn dead_owner() -> String {
        let own_pid = format!("/{}/", std::process::id());
        let label = Owner::current().to_label();
        label.replace(&own_pid, "/2147483647/")
    }

    fn sleeper() -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").process_group(0).spawn().unwrap()
    }

    fn run_of_somebody_dead(root: &Path, name: &str) -> RunFolder {
        let run = RunFolder::create(root, name, false).unwrap();
        fs::write(run.path.join("owner"), dead_owner()).unwrap();
        run
    }

    #[test]
    fn a_stopped_process_is_ended_and_a_reused_pid_is_spared() {
        let root = tempfile::tempdir().unwrap();
        let run = run_of_somebody_dead(root.path(), "r1");
        let (mut left, mut strangers) = (sleeper(), sleeper());
        let started = proc_stat::start_time(left.id()).unwrap();
        let note = |node: &str, pid, started: &str| {
            let folder = run.node(node).unwrap();
            folder.note_process(pid, started).unwrap();
        };
        note("a", left.id(), &started);
        // The pid is that of a living process, which was started at another time.
        note("b", strangers.id(), "1");
        kill(Pid::from_raw(left.id() as i32), Signal::SIGSTOP).unwrap();

        // It is our child here, so somebody has to notice its end.
        let waiting = std::thread::spawn(move || left.wait());
        let swept = sweep(root.path(), Leftovers::OfDeadRuns);
        assert!(!waiting.join().unwrap().unwrap().success());
        assert_eq!(swept.removed.len(), 2, "{swept:?}");
        assert_eq!(swept.stuck, [""; 0]);
        assert!(!run.path.exists());
        assert!(strangers.try_wait().unwrap().is_none(), "it lives");
        strangers.kill().unwrap();
        strangers.wait().unwrap();
    }

    #[test]
    fn what_lives_or_is_kept_stays() {
        let root = tempfile::tempdir().unwrap();
        let living = RunFolder::create(root.path(), "living", false).unwrap();
        let unfinished = root.path().join("unfinished");
        fs::create_dir(&unfinished).unwrap();
        let kept = RunFolder::create(root.path(), "kept", true).unwrap();
        fs::write(kept.path.join("owner"), dead_owner()).unwrap();
        assert_eq!(sweep(root.path(), Leftovers::OfDeadRuns), Swept::default());
        let swept = sweep(root.path(), Leftovers::OfDeadRunsAndKept);
        assert_eq!(swept.removed, [kept.path.display().to_string()]);
        assert!(living.path.exists() && unfinished.exists());
    }
}
