use super::*;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

/// The times at which arrivals are due: at a fixed rate, from the start of a step to its end.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) per_second: f64,
}

impl Schedule {
    /// Returns when an arrival is due; `None` if that is after the end of the step.
    fn due_ns(&self, arrival: u64) -> Option<u64> {
        let after_ns = arrival as f64 * 1e9 / self.per_second;
        let due_ns = self.start_ns.saturating_add(after_ns as u64);
        (due_ns < self.end_ns).then_some(due_ns)
    }
}

/// The thread that makes arrivals when they are due. It is separate, so that the tasks of the
/// contenders cannot delay it, however many there are. It stops when it is dropped.
pub(super) struct Dispatcher {
    /// The time at which it was stopped; `NOT_YET` until then.
    stopped_ns: Arc<AtomicU64>,
    /// `None` after the thread was joined.
    thread: Option<JoinHandle<Timings>>,
}

/// Arrivals that are due within this time are made together.
const SHORTEST_SLEEP: Duration = Duration::from_micros(200);
const NOT_YET: u64 = u64::MAX;
/// After a stop, overdue arrivals are made for at most this long: at a rate that cannot be
/// kept, making all of them would take as long again.
const CATCH_UP_NS: u64 = 1_000_000_000;

impl Dispatcher {
    pub(super) fn start(
        schedule: Schedule,
        mut choose_key: impl FnMut() -> u64 + Send + 'static,
        mut arrive: impl FnMut(Due) + Send + 'static,
    ) -> io::Result<Dispatcher> {
        let stopped_ns = Arc::new(AtomicU64::new(NOT_YET));
        let stopped = stopped_ns.clone();
        let make_all = move || {
            let mut lag = Timings::default();
            let mut arrivals = 0..;
            let due = arrivals
                .by_ref()
                .map_while(|arrival| schedule.due_ns(arrival));
            for intended_ns in due {
                let Some(made_ns) = sleep_until(intended_ns, &stopped) else {
                    break;
                };
                lag.record(intended_ns, made_ns);
                let key = choose_key();
                arrive(Due { intended_ns, key });
            }
            lag
        };
        let thread = thread::Builder::new().name("arrivals".to_owned());
        Ok(Dispatcher {
            thread: Some(thread.spawn(make_all)?),
            stopped_ns,
        })
    }

    /// Stops. Arrivals that are already due are still made, within a second. Returns how late
    /// all arrivals were made.
    pub(super) fn stop(mut self) -> Timings {
        self.tell_to_stop();
        let made = self.thread.take().map(JoinHandle::join);
        made.and_then(Result::ok).unwrap_or_default()
    }

    fn tell_to_stop(&self) {
        let now_ns = raw_monotonic_ns();
        self.stopped_ns.fetch_min(now_ns, Ordering::AcqRel);
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }
}

/// Code that drops a step does not wait for it. Arrivals that nobody takes must not go on for
/// the rest of the step.
impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.tell_to_stop();
    }
}

/// Sleeps until an arrival is due. Returns the time afterwards, or `None` if it was stopped.
fn sleep_until(due_ns: u64, stopped_ns: &AtomicU64) -> Option<u64> {
    loop {
        let now_ns = raw_monotonic_ns();
        let stopped_ns = stopped_ns.load(Ordering::Acquire);
        let left_ns = due_ns.saturating_sub(now_ns);
        if left_ns == 0 {
            return (now_ns < stopped_ns.saturating_add(CATCH_UP_NS)).then_some(now_ns);
        }
        if stopped_ns != NOT_YET {
            return None;
        }
        thread::park_timeout(Duration::from_nanos(left_ns).max(SHORTEST_SLEEP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    fn schedule(per_second: f64, lasting: Duration) -> Schedule {
        let start_ns = raw_monotonic_ns();
        Schedule {
            start_ns,
            end_ns: start_ns + lasting.as_nanos() as u64,
            per_second,
        }
    }

    fn started(schedule: Schedule) -> (Dispatcher, mpsc::Receiver<Due>) {
        let (made, arrived) = mpsc::channel();
        let arrive = move |due: Due| made.send(due).unwrap();
        let dispatcher = Dispatcher::start(schedule, || 0, arrive).unwrap();
        (dispatcher, arrived)
    }

    #[test]
    fn arrivals_are_due_at_their_rate_and_end_with_the_step() {
        let schedule = Schedule {
            start_ns: 1_000,
            end_ns: 1_000 + 1_000_000_000,
            per_second: 4.0,
        };
        let due: Vec<_> = (0..5).map(|arrival| schedule.due_ns(arrival)).collect();
        let quarter = |n: u64| Some(1_000 + n * 250_000_000);
        let expected = [quarter(0), quarter(1), quarter(2), quarter(3), None];
        assert_eq!(due, expected);
    }

    #[test]
    fn every_arrival_is_made_and_none_before_it_is_due() {
        let schedule = schedule(10_000.0, Duration::from_millis(100));
        let (made, arrived) = mpsc::channel();
        let arrive = move |due: Due| made.send((due, raw_monotonic_ns())).unwrap();
        let dispatcher = Dispatcher::start(schedule, || 3, arrive).unwrap();
        let arrived: Vec<_> = arrived.iter().collect();
        assert_eq!(arrived.len(), 1_000);
        assert!(arrived.iter().all(|(due, at_ns)| due.intended_ns <= *at_ns));
        assert!(arrived.iter().all(|(due, _)| due.key == 3));
        assert_eq!(dispatcher.stop().latency().count, 1_000);
    }

    #[test]
    fn what_was_due_before_a_stop_is_made_however_late_the_thread_is() {
        let mut schedule = schedule(1_000.0, Duration::from_secs(10));
        schedule.start_ns -= 5_000_000_000;
        schedule.end_ns -= 10_000_000_000;
        let (dispatcher, arrived) = started(schedule);
        assert_eq!(dispatcher.stop().latency().count, 5_000);
        assert_eq!(arrived.iter().count(), 5_000);
    }

    #[test]
    fn a_stop_is_heard_between_two_arrivals() {
        let schedule = schedule(0.001, Duration::from_secs(3_600));
        let (dispatcher, arrived) = started(schedule);
        arrived.recv().expect("the first is due at once");
        assert_eq!(dispatcher.stop().latency().count, 1);
    }

    #[test]
    fn nothing_arrives_any_more_once_it_is_dropped() {
        let schedule = schedule(0.001, Duration::from_secs(3_600));
        let (dispatcher, arrived) = started(schedule);
        arrived.recv().expect("the first is due at once");
        drop(dispatcher);
        // The thread has the only sender and drops it when it ends.
        let next = arrived.recv_timeout(Duration::from_secs(60));
        assert_eq!(next, Err(mpsc::RecvTimeoutError::Disconnected));
    }
}
