//! Plain lines for a log: one when a task begins, one when it ends, and from time to time one
//! about a long task, so that silence does not look like the end.

use super::awaited::TaskDetail;
use super::*;
use crate::progress::Task;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A task that was silent for this long reports what it awaits.
const LONG: Duration = Duration::from_secs(30);

type Say = Box<dyn Fn(String) + Send + Sync>;

pub struct Lines {
    shared: Arc<LineState>,
}

struct LineState {
    long: Duration,
    say: Say,
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

#[derive(Default)]
struct Tasks {
    open: Vec<Arc<OpenTask>>,
    over: bool,
}

struct OpenTask {
    what: String,
    started: Instant,
    told: Mutex<TaskLog>,
}

struct TaskLog {
    awaited: TaskDetail,
    /// The time of the last line about the task.
    last: Instant,
}

impl Lines {
    pub fn new() -> Lines {
        Lines::every(LONG, Box::new(output::complain))
    }

    fn every(long: Duration, say: Say) -> Lines {
        let shared = Arc::new(LineState {
            long,
            say,
            tasks: Mutex::default(),
            changed: Condvar::new(),
        });
        let watched = Arc::clone(&shared);
        // The thread ends with the lines. If it cannot start, long waits are only silent.
        let _ = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || watched.watch());
        Lines { shared }
    }

    pub fn say(&self, line: &str) {
        (self.shared.say)(line.to_owned());
    }

    pub fn begin(&self, what: &str) -> LineTask {
        (self.shared.say)(format!("{what} …"));
        let now = Instant::now();
        let open = Arc::new(OpenTask {
            what: what.to_owned(),
            started: now,
            told: Mutex::new(TaskLog {
                awaited: TaskDetail::nothing_yet(),
                last: now,
            }),
        });
        self.shared.tasks.lock().open.push(Arc::clone(&open));
        self.shared.changed.notify_all();
        LineTask {
            open,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.shared.tasks.lock().over = true;
        self.shared.changed.notify_all();
    }
}

impl LineState {
    /// Sleeps until the next task has been silent for too long, and reports it.
    fn watch(&self) {
        let mut tasks = self.tasks.lock();
        while !tasks.over {
            let now = Instant::now();
            let lines = tasks
                .open
                .iter()
                .filter_map(|open| open.due(now, self.long));
            lines.for_each(&self.say);
            let next = tasks.open.iter().map(|open| open.due_at(self.long)).min();
            match next {
                None => self.changed.wait(&mut tasks),
                Some(next) => {
                    let left = next.saturating_duration_since(now);
                    self.changed.wait_for(&mut tasks, left);
                }
            }
        }
    }
}

impl OpenTask {
    fn due_at(&self, long: Duration) -> Instant {
        self.told.lock().last + long
    }

    /// Returns the line to print, if it is due.
    fn due(&self, now: Instant, long: Duration) -> Option<String> {
        let mut told = self.told.lock();
        if now < told.last + long {
            return None;
        }
        told.last = now;
        let total = now.saturating_duration_since(self.started).as_secs();
        let detail = match told.awaited.detail() {
            "" => "under way".to_owned(),
            detail => format!("{detail} for {} s", told.awaited.lasted().as_secs()),
        };
        Some(format!("{}: {detail} ({total} s so far)", self.what))
    }
}

pub struct LineTask {
    open: Arc<OpenTask>,
    shared: Arc<LineState>,
}

impl Task for LineTask {
    /// Details are for a live display; in a log each of them would be noise.
    fn detail(&self, detail: &str) {
        self.open.told.lock().awaited.set(&shown::line(detail));
    }

    fn finish(&self, result: &str) {
        (self.shared.say)(ended(&self.open.what, result, self.open.started));
    }
}

impl Drop for LineTask {
    fn drop(&mut self) {
        let mut tasks = self.shared.tasks.lock();
        tasks.open.retain(|open| !Arc::ptr_eq(open, &self.open));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};

    #[test]
    fn a_long_wait_is_told_now_and_then_until_it_is_over() {
        let (hear, said) = channel();
        let hear = Box::new(move |line| drop(hear.send(line)));
        let lines = Lines::every(Duration::from_millis(20), hear);
        let next = || said.recv_timeout(Duration::from_secs(60)).unwrap();
        let task = lines.begin("storm redis");
        assert_eq!(next(), "storm redis …");
        task.detail("waiting for b.acquired");
        // Other lines may come before the one with the detail; `next` has a deadline.
        let mut told = std::iter::repeat_with(next);
        let about = "storm redis: waiting for b.acquired for ";
        assert!(told.any(|line| line.starts_with(about) && line.ends_with(" s so far)")));
        task.finish("as expected");
        drop(task);
        let mut rest = std::iter::repeat_with(next);
        assert!(rest.any(|line| line.starts_with("storm redis: as expected (")));
        drop(lines);
        // No thread is left that could print anything.
        let more = said.recv_timeout(Duration::from_secs(60));
        assert_eq!(more, Err(RecvTimeoutError::Disconnected));
    }
}
