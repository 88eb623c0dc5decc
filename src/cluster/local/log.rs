//! The output of one process so far.

use super::*;
use bounded_io::files;
use std::fs::File;
use std::io::Write;
use tokio::sync::watch;

/// The line that says that a process is ready is near the beginning; later output is only written
/// to the file.
const MOST_REMEMBERED: usize = 1024 * 1024;

pub struct Log {
    file: File,
    heard: watch::Sender<LogState>,
}

struct LogState {
    text: String,
    /// The number of streams that may still print something.
    open: usize,
}

impl Log {
    /// Opens the log, which appends to the output of earlier processes of the node.
    pub fn open(path: &Path, streams: usize) -> io::Result<Log> {
        let heard = LogState {
            text: String::new(),
            open: streams,
        };
        Ok(Log {
            file: files::append_private(path)?,
            heard: watch::Sender::new(heard),
        })
    }

    pub fn add(&self, bytes: &[u8]) {
        // Logs help people and decide nothing.
        let _ = (&self.file).write_all(bytes);
        self.heard.send_modify(|heard| {
            if heard.text.len() < MOST_REMEMBERED {
                heard.text.push_str(&String::from_utf8_lossy(bytes));
            }
        });
    }

    pub fn close_one(&self) {
        self.heard.send_modify(|heard| heard.open -= 1);
    }

    /// Waits for this text; returns whether it came before the process ended.
    pub async fn await_said(&self, wanted: &str) -> bool {
        let mut heard = self.heard.subscribe();
        let known = heard.wait_for(|heard| heard.open == 0 || heard.text.contains(wanted));
        known.await.is_ok_and(|heard| heard.text.contains(wanted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_is_heard_in_pieces_and_an_end_ends_the_wait() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let log = Log::open(&path, 2).unwrap();
        log.add(b"Ready to acc");
        let (heard, ()) = tokio::join!(log.await_said("Ready to accept"), async {
            log.add(b"ept\n");
        });
        assert!(heard);
        log.close_one();
        log.add(b"last words\n");
        let (heard, ()) = tokio::join!(log.await_said("more"), async { log.close_one() });
        assert!(!heard);
        assert!(log.await_said("last words").await);
        let next_life = Log::open(&path, 1).unwrap();
        next_life.close_one();
        assert!(
            !next_life.await_said("Ready").await,
            "an earlier life said it"
        );
        let all = std::fs::read_to_string(&path).unwrap();
        assert_eq!(all, "Ready to accept\nlast words\n");
    }
}
