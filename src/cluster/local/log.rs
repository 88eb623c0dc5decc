//! What one life of a process has said so far.

use crate::files;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use tokio::sync::watch;

/// The line that says that a process is ready stands near the beginning; what
/// comes later is only written down.
const MOST_REMEMBERED: usize = 1024 * 1024;

pub struct Log {
    file: File,
    heard: watch::Sender<Heard>,
}

struct Heard {
    text: String,
    /// The streams that may still say something.
    open: usize,
}

impl Log {
    /// Behind what earlier lives have said.
    pub fn open(path: &Path, streams: usize) -> io::Result<Log> {
        let heard = Heard {
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

    /// Whether this is said at all, before the process ends.
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
