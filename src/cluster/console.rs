use std::io;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

/// The time to write a line. One this short fits into the pipe of a stopped process.
const SAY_DEADLINE: Duration = Duration::from_secs(5);

/// A process's stdin and stdout: a control channel that no network fault cuts.
pub struct Console {
    pub stdin: Stdin,
    /// The lines end when the process does.
    pub lines: mpsc::Receiver<ConsoleLine>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ConsoleLine {
    Out(String),
    Err(String),
}

impl ConsoleLine {
    /// The number of lines that may wait to be read; a process that prints more is slowed down.
    pub const MOST_WAITING: usize = 1024;
}

/// The stdin of a process, which ends when this is dropped.
pub struct Stdin(pub Pin<Box<dyn AsyncWrite + Send>>);

impl Stdin {
    /// Writes a line. It returns when the process can read the line, though it may not have.
    pub async fn say(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        let written = async {
            self.0.write_all(line.as_bytes()).await?;
            self.0.flush().await
        };
        tokio::time::timeout(SAY_DEADLINE, written).await?
    }
}
