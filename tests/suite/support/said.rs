//! The output of a child, read line by line, so that tests can wait for it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LAST_LINES: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

#[derive(Default)]
pub struct Said {
    heard: Mutex<Heard>,
    more: Condvar,
}

#[derive(Default)]
struct Heard {
    text: String,
    over: bool,
}

impl Said {
    /// Reads everything to the end, so that the child never blocks on a full pipe. The thread
    /// ends with the child's output.
    pub fn hear(output: impl Read + Send + 'static) -> (Arc<Said>, JoinHandle<()>) {
        let said = Arc::new(Said::default());
        let hears = Arc::clone(&said);
        let thread = std::thread::spawn(move || {
            let mut output = BufReader::new(output);
            let mut line = Vec::new();
            while output.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
                hears.heard().text.push_str(&String::from_utf8_lossy(&line));
                hears.more.notify_all();
                line.clear();
            }
            hears.heard().over = true;
            hears.more.notify_all();
        });
        (said, thread)
    }

    /// Reads a file that a process writes, from its beginning, until that process is gone. When
    /// this returns, everything that was there has been read: positions that another process
    /// wrote down are good here. Nothing signals that a file grows, so it is polled; the thread
    /// ends with the process or with the last listener.
    pub fn follow(path: &Path, writer: u32) -> Arc<Said> {
        let said = Arc::new(Said::default());
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut output = BufReader::new(file);
        let mut line = Vec::new();
        said.hear_lines(&mut output, &mut line);
        let hears = Arc::downgrade(&said);
        std::thread::spawn(move || {
            while let Some(hears) = hears.upgrade() {
                // This is checked before the last read, so that no output is missed.
                let over = has_ended(writer);
                hears.hear_lines(&mut output, &mut line);
                if over {
                    hears.heard().over = true;
                    hears.more.notify_all();
                    return;
                }
                drop(hears);
                std::thread::sleep(LOOK_AGAIN);
            }
        });
        said
    }

    /// Reads all whole lines that are there; the beginning of another one stays in `line`.
    fn hear_lines(&self, output: &mut impl BufRead, line: &mut Vec<u8>) {
        while output.read_until(b'\n', line).is_ok_and(|n| n > 0) && line.ends_with(b"\n") {
            self.heard().text.push_str(&String::from_utf8_lossy(line));
            self.more.notify_all();
            line.clear();
        }
    }

    pub fn text(&self) -> String {
        self.heard().text.clone()
    }

    /// Returns the current length of the output: later output is after this position.
    pub fn now(&self) -> usize {
        self.heard().text.len()
    }

    /// Returns once a text appears after this position; the error says why it never will, with
    /// the last lines.
    pub fn await_text(&self, from: usize, wanted: &str, limit: Duration) -> Result<(), String> {
        let until = Instant::now() + limit;
        let mut heard = self.heard();
        while !heard.text[from..].contains(wanted) {
            let left = until.saturating_duration_since(Instant::now());
            if heard.over || left.is_zero() {
                let why = match heard.over {
                    true => "it ended".to_owned(),
                    false => format!("within {limit:?}"),
                };
                let last = last_lines(&heard.text);
                return Err(format!(
                    "never said {wanted:?} ({why}). Its last words:\n{last}"
                ));
            }
            let waited = self.more.wait_timeout(heard, left);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// Waits for the end of the output, and returns whether it came in time.
    pub fn await_end(&self, limit: Duration) -> bool {
        let waited = self
            .more
            .wait_timeout_while(self.heard(), limit, |heard| !heard.over);
        waited.unwrap_or_else(PoisonError::into_inner).0.over
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a process is gone, or is a zombie that its parent has not collected.
fn has_ended(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.map_or(true, |stat| stat.contains(") Z "))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
