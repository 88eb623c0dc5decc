//! The resource as a process of its own on this machine, for a load that names no resource.

use super::*;
use crate::model::Fence;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

const READY_DEADLINE: Duration = Duration::from_secs(10);
const END_DEADLINE: Duration = Duration::from_secs(10);

/// A resource that ends with this process, however that ends.
pub struct ResourceProcess {
    pub url: String,
    child: Child,
    /// Kept open, because a process that prints into a closed pipe is ended by it.
    _stdout: Lines<BufReader<ChildStdout>>,
}

impl ResourceProcess {
    /// Starts the resource. Call it on a thread that lives as long as the program: to the system,
    /// the death of the thread that started a process is the death of its parent.
    pub async fn start(data: &Path, fence: Fence) -> RunResult<ResourceProcess> {
        let failed = |reason: String| RunError::NoResource { reason };
        let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
        let mut command = Command::new(program);
        command
            .args(["resource", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(["--fence", &fence.to_string()])
            .env_remove("FENCEPOST_FENCE")
            .env_remove("FENCEPOST_MUTANT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            // Ctrl-C is for us; the resource has to answer until everybody is done.
            .process_group(0);
        // SAFETY: prctl is one system call and allocates nothing, so it may stand
        // between fork and exec.
        unsafe {
            command.pre_exec(|| Ok(set_pdeathsig(Signal::SIGTERM)?));
        }
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| failed("it has no stdout".to_owned()))?;
        let mut stdout = BufReader::new(stdout).lines();
        let ready = timeout(READY_DEADLINE, stdout.next_line()).await;
        let line = match ready {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => return Err(failed("it ended at once".to_owned())),
            Ok(Err(error)) => return Err(failed(error.to_string())),
            Err(_) => return Err(failed("it was not ready in time".to_owned())),
        };
        let address = line.strip_prefix("resource listening on ");
        let address = address.and_then(|rest| rest.split(',').next());
        let address = address.ok_or_else(|| failed(format!("it says {line:?}")))?;
        Ok(ResourceProcess {
            url: format!("http://{address}"),
            child,
            _stdout: stdout,
        })
    }

    /// Asks it to end, and kills it if it does not.
    pub async fn end(mut self) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid {
            // It may have ended already, which is fine.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
        if timeout(END_DEADLINE, self.child.wait()).await.is_err() {
            let _ = self.child.kill().await;
        }
    }
}
