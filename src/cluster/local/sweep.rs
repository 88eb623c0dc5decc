//! Removes what was left behind by runs that did not get to clean up.

use super::process::LOOK_AGAIN;
use super::*;
use crate::cluster::{Leftovers, SweepResult};
use nix::sys::signal::{Signal, kill};
use nix::unistd::geteuid;
use std::time::Instant;

/// A run that began less than this ago may not name its owner yet.
const UNFINISHED_FOR: Duration = Duration::from_secs(60);
const END_DEADLINE: Duration = Duration::from_secs(10);

/// Ends processes and removes folders of runs whose owners are certainly dead.
pub fn sweep(root: &Path, which: Leftovers) -> SweepResult {
    let mut swept = SweepResult::default();
    let Ok(runs) = fs::read_dir(root) else {
        return swept;
    };
    for run in runs.filter_map(Result::ok) {
        let folder = RunFolder { path: run.path() };
        let name = run.file_name().to_string_lossy().into_owned();
        let owner = folder.owner();
        let is_dead = match &owner {
            Some(owner) => owner.is_certainly_dead(),
            None => is_old(&folder.path),
        };
        if !is_dead || (folder.is_kept() && which == Leftovers::OfDeadRuns) {
            continue;
        }
        // After another boot the same pids are other processes, which may even have been started at
        // the same tick.
        let processes = if owner.is_some_and(|owner| owner.shares_our_pids()) {
            folder.processes()
        } else {
            Vec::new()
        };
        let mut is_left = false;
        for (pid, started) in processes {
            match end(pid, &started, &folder.path) {
                ProcessEnd::Now => swept.removed.push(format!("process {pid} of run {name}")),
                ProcessEnd::Before => {}
                ProcessEnd::Never => {
                    is_left = true;
                    swept.stuck.push(format!(
                        "process {pid} of run {name} does not end; kill -9 {pid}"
                    ));
                }
                ProcessEnd::NotOurs => swept.stuck.push(format!(
                    "process {pid} is left alone: run {name} claims it, and it is not at home in its folder; look at it"
                )),
            }
        }
        // The folder knows the process, so the next sweep tries again.
        if is_left {
            continue;
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

enum ProcessEnd {
    Before,
    Now,
    Never,
    NotOurs,
}

/// Ends only the very process that was started then, because another process may have its pid by
/// now; and the processes that it has started, which do not always die with it. Each has to work
/// in the folder: a file alone never decides which process is killed.
fn end(leader: u32, started: &str, folder: &Path) -> ProcessEnd {
    let is_left = |pid: &u32| {
        let is_another = *pid == leader && !proc_stat::is_still(*pid, started);
        !is_another && is_at_home_in(folder, *pid) == Some(true)
    };
    let mut ended = ProcessEnd::Before;
    let give_up_at = Instant::now() + END_DEADLINE;
    loop {
        let left = proc_stat::group(leader).into_iter().filter(is_left);
        let left: Vec<u32> = left.collect();
        if left.is_empty() && proc_stat::has_ended(leader, started) {
            return ended;
        }
        if left.is_empty() && is_at_home_in(folder, leader) == Some(false) {
            return ProcessEnd::NotOurs;
        }
        if Instant::now() >= give_up_at {
            return ProcessEnd::Never;
        }
        for pid in left.into_iter().filter_map(|pid| i32::try_from(pid).ok()) {
            let pid = Pid::from_raw(pid);
            // A stopped process is continued before it is killed.
            let _ = kill(pid, Signal::SIGCONT);
            let _ = kill(pid, Signal::SIGKILL);
            ended = ProcessEnd::Now;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Returns whether a process works in the folder of a run as its user: only a node does. Returns
/// None if that cannot be seen, as with a process that is just ending.
fn is_at_home_in(folder: &Path, pid: u32) -> Option<bool> {
    if proc_stat::user(pid)? != geteuid().as_raw() {
        return Some(false);
    }
    let home = fs::read_link(format!("/proc/{pid}/cwd")).ok()?;
    Some(home.starts_with(folder.canonicalize().ok()?))
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

    fn sleeper(home: &Path) -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").process_group(0).current_dir(home);
        command.spawn().unwrap()
    }

    fn run_of_somebody_dead(root: &Path, name: &str) -> RunFolder {
        let run = RunFolder::create(root, &name.into(), false).unwrap();
        fs::write(run.path.join("owner"), dead_owner()).unwrap();
        run
    }

    #[test]
    fn a_stopped_process_is_ended_and_a_reused_pid_is_spared() {
        let root = tempfile::tempdir().unwrap();
        let run = run_of_somebody_dead(root.path(), "r1");
        let root_of = |node: &str| run.node(&node.into()).unwrap().root();
        let (mut left, mut strangers) = (sleeper(&root_of("a")), sleeper(&root_of("b")));
        let started = proc_stat::start_time(left.id()).unwrap();
        let note = |node: &str, pid, started: &String| {
            let folder = run.node(&node.into()).unwrap();
            folder.note_processes(&[(pid, started.clone())]).unwrap();
        };
        note("a", left.id(), &started);
        // The pid is that of a living process, which was started at another time.
        note("b", strangers.id(), &"1".to_owned());
        kill(Pid::from_raw(left.id() as i32), Signal::SIGSTOP).unwrap();

        // It is our child here, so a parent has to notice its end.
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
    fn what_a_script_has_started_is_ended_with_it() {
        let root = tempfile::tempdir().unwrap();
        let run = run_of_somebody_dead(root.path(), "r1");
        let node = run.node(&"redis".into()).unwrap();
        let mut script = Command::new("sh");
        script.args(["-c", "sleep 1000; true"]).process_group(0);
        let mut script = script.current_dir(node.root()).spawn().unwrap();
        let leader = script.id();
        let started = proc_stat::start_time(leader).unwrap();
        node.note_processes(&[(leader, started.clone())]).unwrap();
        let give_up_at = Instant::now() + END_DEADLINE;
        while proc_stat::group(leader).len() < 2 {
            assert!(Instant::now() < give_up_at, "it has a child");
            std::thread::sleep(LOOK_AGAIN);
        }
        // The kernel does the same when its parent dies.
        script.kill().unwrap();
        script.wait().unwrap();
        assert_eq!(proc_stat::group(leader).len(), 1, "the child lives on");
        let swept = sweep(root.path(), Leftovers::OfDeadRuns);
        assert_eq!(swept.removed.len(), 2, "{swept:?}");
        assert_eq!(proc_stat::group(leader), [0u32; 0]);
        assert!(!run.path.exists());
    }

    /// The pid and the start time are right, but the file still does not prove whose process it is.
    #[test]
    fn a_planted_pid_file_does_not_direct_a_kill() {
        let root = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let run = run_of_somebody_dead(root.path(), "evil");
        let mut victim = sleeper(elsewhere.path());
        let started = proc_stat::start_time(victim.id()).unwrap();
        let node = run.node(&"n".into()).unwrap();
        node.note_processes(&[(victim.id(), started.clone())])
            .unwrap();
        let swept = sweep(root.path(), Leftovers::OfDeadRuns);
        assert!(victim.try_wait().unwrap().is_none(), "it lives");
        assert_eq!(swept.removed, [run.path.display().to_string()]);
        assert!(swept.stuck[0].contains("is left alone"), "{swept:?}");
        victim.kill().unwrap();
        victim.wait().unwrap();
    }

    #[test]
    fn after_another_boot_only_the_folder_goes() {
        let root = tempfile::tempdir().unwrap();
        let run = RunFolder::create(root.path(), &"r1".into(), false).unwrap();
        let label = Owner::current().to_label();
        let mut parts: Vec<&str> = label.split('/').collect();
        parts[1] = "an earlier boot";
        fs::write(run.path.join("owner"), parts.join("/")).unwrap();
        // The same pid, started at the same tick by chance.
        let mut somebody = sleeper(root.path());
        let started = proc_stat::start_time(somebody.id()).unwrap();
        let node = run.node(&"a".into()).unwrap();
        node.note_processes(&[(somebody.id(), started.clone())])
            .unwrap();
        let swept = sweep(root.path(), Leftovers::OfDeadRuns);
        assert_eq!(swept.removed, [run.path.display().to_string()]);
        assert!(somebody.try_wait().unwrap().is_none(), "it lives");
        somebody.kill().unwrap();
        somebody.wait().unwrap();
    }

    #[test]
    fn what_lives_or_is_kept_stays() {
        let root = tempfile::tempdir().unwrap();
        let living = RunFolder::create(root.path(), &"living".into(), false).unwrap();
        let unfinished = root.path().join("unfinished");
        fs::create_dir(&unfinished).unwrap();
        let kept = RunFolder::create(root.path(), &"kept".into(), true).unwrap();
        fs::write(kept.path.join("owner"), dead_owner()).unwrap();
        assert_eq!(
            sweep(root.path(), Leftovers::OfDeadRuns),
            SweepResult::default()
        );
        let swept = sweep(root.path(), Leftovers::OfDeadRunsAndKept);
        assert_eq!(swept.removed, [kept.path.display().to_string()]);
        assert!(living.path.exists() && unfinished.exists());
    }
}
