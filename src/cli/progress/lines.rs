//! Plain lines for a log: each task when it begins and ends, and now and then
//! what takes long, so that nobody takes silence for the end.

use super::awaited::Awaited;
use super::ended;
use crate::cli::output;
use crate::progress::Task;
use crate::report::shown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A task that said nothing for so long says what it awaits.
const LONG: Duration = Duration::from_secs(30);

type Say = Box<dyn Fn(String) + Send + Sync>;

/// Everything under way.
pub struct Lines {
    shared: Arc<Shared>,
}

struct Shared {
    long: Duration,
    say: Say,
    tasks: Mutex<Tasks>,
    changed: Condvar,
}

#[derive(Default)]
struct Tasks {
    open: Vec<Arc<Open>>,
    over: bool,
}

struct Open {
    what: String,
    started: Instant,
    told: Mutex<Told>,
}

struct Told {
    awaited: Awaited,
    /// When it last said anything.
    last: Instant,
}

impl Lines {
    pub fn new() -> Lines {
        Lines::every(LONG, Box::new(output::complain))
    }

    fn every(long: Duration, say: Say) -> Lines {
        let shared = Arc::new(Shared {
            long,
            say,
            tasks: Mutex::default(),
            changed: Condvar::new(),
        });
        let watched = Arc::clone(&shared);
        // Ends when the lines do. Without it, long waits are only silent.
        let _ = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(move || watched.watch());
        Lines { shared }
    }

    pub fn say(&self, line: &str) {
        (self.shared.say)(line.to_owned());
    }

    pub fn begin(&self, what: &str) -> Line {
        (self.shared.say)(format!("{what} …"));
        let now = Instant::now();
        let open = Arc::new(Open {
            what: what.to_owned(),
            started: now,
            told: Mutex::new(Told {
                awaited: Awaited::nothing_yet(),
                last: now,
            }),
        });
        self.shared.tasks().open.push(Arc::clone(&open));
        self.shared.changed.notify_all();
        Line {
            open,
            shared: Arc::clone(&self.shared),
        }
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.shared.tasks().over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn tasks(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the next task has been silent for long.
    fn watch(&self) {
        let mut tasks = self.tasks();
        while !tasks.over {
            let now = Instant::now();
            let lines = tasks
                .open
                .iter()
                .filter_map(|open| open.due(now, self.long));
            lines.for_each(&self.say);
            let next = tasks.open.iter().map(|open| open.due_at(self.long)).min();
            tasks = match next {
                None => {
                    let waited = self.changed.wait(tasks);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(next) => {
                    let left = next.saturating_duration_since(now);
                    let waited = self.changed.wait_timeout(tasks, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}

impl Open {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn due_at(&self, long: Duration) -> Instant {
        self.told().last + long
    }

    /// What to say, where it is time to.
    fn due(&self, now: Instant, long: Duration) -> Option<String> {
        let mut told = self.told();
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

pub struct Line {
    open: Arc<Open>,
    shared: Arc<Shared>,
}

impl Task for Line {
    /// Details are for watching; in a log each of them would be noise.
    fn detail(&self, detail: &str) {
        self.open.told().awaited.set(&shown::line(detail));
    }

    fn finish(&self, result: &str) {
        (self.shared.say)(ended(&self.open.what, result, self.open.started));
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let mut tasks = self.shared.tasks();
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
        // However many came before the detail did; `next` has a deadline.
        let mut told = std::iter::repeat_with(next);
        let about = "storm redis: waiting for b.acquired for ";
        assert!(told.any(|line| line.starts_with(about) && line.ends_with(" s so far)")));
        task.finish("as expected");
        drop(task);
        let mut rest = std::iter::repeat_with(next);
        assert!(rest.any(|line| line.starts_with("storm redis: as expected (")));
        drop(lines);
        // Nobody is left who could say anything.
        let more = said.recv_timeout(Duration::from_secs(60));
        assert_eq!(more, Err(RecvTimeoutError::Disconnected));
    }
}
