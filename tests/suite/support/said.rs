//! What a child says, heard line by line, so that others can wait for it.

use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LAST_LINES: usize = 20;

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
    /// Hears everything to the end, so that the child never waits for a full
    /// pipe. The thread ends with the child's output.
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

    pub fn text(&self) -> String {
        self.heard().text.clone()
    }

    /// How much was said so far: what comes next is behind this place.
    pub fn now(&self) -> usize {
        self.heard().text.len()
    }

    /// Returns once a text was said behind this place; the error says why it
    /// never will be, with the last that was.
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

    /// Whether nothing more can come, waited for.
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

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}
