//! The program while it runs.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long the program may take to heal and remove everything once it is asked to end.
const CLEANING: Duration = Duration::from_secs(60);
/// The largest document that is read.
const DOCUMENT_BYTES: u64 = 64 << 20;

/// A program that is asked to end when nobody waits for it any more.
pub struct Running(Child);

pub struct Ended {
    pub stdout: Vec<u8>,
    pub code: Option<i32>,
}

impl Running {
    pub fn start(mut command: Command) -> io::Result<Running> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        command.spawn().map(Running)
    }

    /// Waits for its end. Returns None if the limit came first; the program is gone then, too.
    pub async fn wait(mut self, limit: Duration) -> io::Result<Option<Ended>> {
        if let Ok(ended) = timeout(limit, self.read()).await {
            return ended.map(Some);
        }
        self.ask_to_end();
        // Whatever it still says, nobody reads.
        drop(self.0.stdout.take());
        if timeout(CLEANING, self.0.wait()).await.is_err() {
            self.0.kill().await?;
        }
        Ok(None)
    }

    async fn read(&mut self) -> io::Result<Ended> {
        let mut stdout = Vec::new();
        if let Some(pipe) = self.0.stdout.as_mut() {
            pipe.take(DOCUMENT_BYTES).read_to_end(&mut stdout).await?;
        }
        let code = self.0.wait().await?.code();
        Ok(Ended { stdout, code })
    }

    fn ask_to_end(&self) {
        let pid = self.0.id().and_then(|pid| i32::try_from(pid).ok());
        if let Some(pid) = pid {
            // It may have ended this moment.
            let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.ask_to_end();
    }
}
