//! Programs of this machine, which are run to their end and never outlive us.

use super::*;
use crate::cluster::LastLines;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::{Read, Seek};
use std::process::Stdio;
use tokio::process::{Child, Command};

/// The time that a program gets to tidy up after SIGTERM: mmdebstrap finishes the step it is in,
/// then unmounts and removes its work folder.
const TIDY_UP_LOOKS: u32 = 600;
const LOOK_AGAIN: Duration = Duration::from_millis(50);

pub struct ProgramExit {
    pub success: bool,
    pub stderr: LastLines,
}

/// Runs a command, of which the caller sets arguments and stdout.
pub async fn run(mut command: Command, what: &str, limit: Duration) -> ClusterResult<ProgramExit> {
    let failed = |error: std::io::Error| ClusterError::failed(what, error);
    // A file and not a pipe: a program that tidies up after we have gone must not die of a broken
    // pipe in the middle of it.
    let mut stderr = tempfile::tempfile().map_err(failed)?;
    command
        .stdin(Stdio::null())
        .stderr(stderr.try_clone().map_err(failed)?)
        .process_group(0);
    let mut running = RunningProgram(command.spawn().map_err(failed)?);
    let status = match tokio::time::timeout(limit, running.0.wait()).await {
        Ok(status) => status.map_err(failed)?,
        Err(_) => {
            return Err(ClusterError::deadline(what, limit));
        }
    };
    let mut text = Vec::new();
    let read = stderr.rewind().and_then(|()| stderr.read_to_end(&mut text));
    read.map_err(failed)?;
    Ok(ProgramExit {
        success: status.success(),
        stderr: LastLines::of(&String::from_utf8_lossy(&text)),
    })
}

/// A running program. If it is given up, it and its children are asked to end before they are
/// killed. It has a process group of its own, so that a Ctrl-C reaches it in no other way.
struct RunningProgram(Child);

impl Drop for RunningProgram {
    fn drop(&mut self) {
        // A child that was waited for has no pid any more; the pid may be that of another process.
        let Some(pid) = self.0.id().and_then(|pid| i32::try_from(pid).ok()) else {
            return;
        };
        let group = Pid::from_raw(pid);
        let _ = killpg(group, Signal::SIGTERM);
        for _ in 0..TIDY_UP_LOOKS {
            if !matches!(self.0.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        let _ = killpg(group, Signal::SIGKILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_program_given_up_gets_to_tidy_up() {
        let folder = tempfile::tempdir().unwrap();
        let (started, tidied) = (folder.path().join("started"), folder.path().join("tidied"));
        let mut command = Command::new("sh");
        let script = "trap 'echo > $2; exit' TERM; echo > $1; while :; do sleep 0.05; done";
        command.args(["-c", script, "sh"]).args([&started, &tidied]);
        let limit = Duration::from_secs(2);
        let given_up = run(command, "wait for ever", limit).await;
        assert!(matches!(given_up, Err(ClusterError::Deadline { .. })));
        assert!(started.exists() && tidied.exists());
    }

    #[tokio::test]
    async fn the_end_of_a_program_comes_with_its_last_lines() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one >&2; echo two >&2; exit 3"]);
        let ended = run(command, "fail", Duration::from_secs(5)).await.unwrap();
        assert!(!ended.success);
        assert_eq!(ended.stderr.joined(), "one\ntwo");
    }
}
