//! The figures of workers that went on for a time, from what they reported: the same as of
//! contenders of our own, so that a lock of somebody else can be put beside them.

use super::backlog::Due;
use super::bound::set_bound;
use super::tally::{Held, Tally};
use crate::model::{ArrivalEnd, ContendStep, Event, EventKind, Queued, Step};
use std::collections::BTreeMap;

/// More looks than this at the queue draw no better picture.
const LOOKS_MAX: u64 = 300;
/// Errors of a worker are in its own words, so no two may be the same.
const ERRORS_MAX: usize = 20;
const OTHER_ERRORS: &str = "others";

/// One round of a worker, as far as it has come.
struct Round {
    due: Due,
    granted_ns: Option<u64>,
    writing_ns: Option<u64>,
    releasing_ns: Option<u64>,
}

/// Returns the figures; None if nobody asked for a lock. What was sent to the servers is not
/// known, so attempts and commands are 0.
pub fn heard(history: &[Event]) -> Option<ContendStep> {
    let mut events: Vec<&Event> = history.iter().collect();
    events.sort_by_key(|event| event.at_ns);
    let asks = |event: &&&Event| matches!(event.kind, EventKind::Acquiring { .. });
    let started_ns = events.iter().find(asks)?.at_ns;
    let ended_ns = events.last()?.at_ns;
    let mut replay = Replay::default();
    let every_ns = ((ended_ns - started_ns) / LOOKS_MAX).max(1);
    let (mut look_ns, mut queue) = (started_ns, Vec::new());
    for event in events {
        while event.at_ns > look_ns {
            queue.push(Queued {
                at_ms: (look_ns - started_ns) / 1_000_000,
                waiting: replay.tally.waiting(),
                backlog: 0,
            });
            look_ns += every_ns;
        }
        replay.take(event);
    }
    replay.give_up(ended_ns);
    let mut step = replay.tally.step(ended_ns - started_ns);
    step.contenders = replay.workers.len() as u32;
    // Everybody asks again as soon as they are done.
    step.model = "closed".to_owned();
    step.errors = replay.errors;
    step.queue = queue;
    let keys = replay.keys.len() as u64;
    set_bound(&mut step, replay.tally.holds_overlapped(), keys);
    Some(step)
}

#[derive(Default)]
struct Replay<'a> {
    tally: Tally,
    workers: BTreeMap<&'a str, u32>,
    keys: BTreeMap<&'a str, u64>,
    rounds: BTreeMap<u32, Round>,
    errors: BTreeMap<String, u64>,
}

impl<'a> Replay<'a> {
    fn take(&mut self, event: &'a Event) {
        let at_ns = event.at_ns;
        let next = self.workers.len() as u32;
        if let EventKind::Acquiring { key, .. } = &event.kind {
            let worker = *self.workers.entry(event.worker.as_str()).or_insert(next);
            let next = self.keys.len() as u64;
            let key = *self.keys.entry(key.as_str()).or_insert(next);
            let due = Due {
                intended_ns: at_ns,
                key,
            };
            self.tally.arrives();
            self.tally.asks(due);
            let round = Round {
                due,
                granted_ns: None,
                writing_ns: None,
                releasing_ns: None,
            };
            self.rounds.insert(worker, round);
            return;
        }
        let Some(&worker) = self.workers.get(event.worker.as_str()) else {
            return;
        };
        if let EventKind::Failed { during, error, .. } = &event.kind {
            self.failed(worker, *during, error, at_ns);
            return;
        }
        let Some(round) = self.rounds.get_mut(&worker) else {
            return;
        };
        match &event.kind {
            EventKind::Acquired { .. } if round.granted_ns.is_none() => {
                let asked_ns = round.due.intended_ns;
                self.tally.granted(round.due, worker, asked_ns, at_ns);
                round.granted_ns = Some(at_ns);
            }
            EventKind::Writing { .. } => round.writing_ns = Some(at_ns),
            EventKind::Releasing { .. } => {
                self.tally.lets_go(round.due.key, worker, at_ns);
                round.releasing_ns = Some(at_ns);
            }
            EventKind::Released { .. } => {
                if let (Some(granted_ns), Some(releasing_ns)) =
                    (round.granted_ns, round.releasing_ns)
                {
                    self.tally.held(&Held {
                        granted_ns,
                        writing_ns: round.writing_ns.unwrap_or(releasing_ns),
                        releasing_ns,
                        released_ns: at_ns,
                    });
                    self.rounds.remove(&worker);
                }
            }
            _ => {}
        }
    }

    fn failed(&mut self, worker: u32, during: Step, error: &str, at_ns: u64) {
        let step = match during {
            Step::Acquire => "acquire",
            Step::Read => "read",
            Step::Write => "write",
            Step::Release => "release",
        };
        let words = format!("{step}: {error}");
        let is_new = !self.errors.contains_key(&words);
        let words = match is_new && self.errors.len() >= ERRORS_MAX {
            true => OTHER_ERRORS.to_owned(),
            false => words,
        };
        *self.errors.entry(words).or_default() += 1;
        match during {
            Step::Acquire => {
                if let Some(round) = self.rounds.remove(&worker)
                    && round.granted_ns.is_none()
                {
                    let end = ArrivalEnd::Failed;
                    self.tally.not_granted(round.due, worker, at_ns, end);
                }
            }
            Step::Release => drop(self.rounds.remove(&worker)),
            Step::Read | Step::Write => {}
        }
    }

    /// Ends the waits that were never answered.
    fn give_up(&mut self, at_ns: u64) {
        for (worker, round) in std::mem::take(&mut self.rounds) {
            if round.granted_ns.is_none() {
                let end = ArrivalEnd::StillWaiting;
                self.tally.not_granted(round.due, worker, at_ns, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const MS: u64 = 1_000_000;

    /// Returns the events of a round that is granted at this time and held for 10 ms, 4 of them
    /// for the write and 1 for the release.
    fn round(worker: &str, asked_ms: u64, granted_ms: u64) -> Vec<Event> {
        let event = |ms: u64, event: &str| {
            let text = json!({
                "at_ns": ms * MS, "worker": worker, "event": event, "round": 1, "key": "k",
                "owner": "o", "token": 1, "outcome": "released",
            });
            serde_json::from_value(text).unwrap()
        };
        vec![
            event(asked_ms, "acquiring"),
            event(granted_ms, "acquired"),
            event(granted_ms + 5, "writing"),
            event(granted_ms + 9, "releasing"),
            event(granted_ms + 10, "released"),
        ]
    }

    #[test]
    fn workers_are_measured_by_what_they_report() {
        let mut history = round("a", 0, 1);
        history.extend(round("b", 0, 13));
        let step = heard(&history).unwrap();
        assert_eq!((step.contenders, step.acquisitions), (2, 2));
        assert_eq!((step.lasted_ms, step.hand_offs_per_s), (23, 1.0 / 0.023));
        // From a's release at 10 ms to b's grant at 13 ms.
        assert_eq!((step.hand_off.count, step.hand_off.max_us / 10), (1, 300));
        assert_eq!((step.write.count, step.write.p50_us / 10), (2, 400));
        assert_eq!(step.fairness.jain, 1.0);
        assert!(step.ceiling_per_s.is_some(), "{}", step.bound_by);
        let waiting: Vec<u64> = step.queue.iter().map(|look| look.waiting).collect();
        assert!(waiting.contains(&1) && waiting.last() == Some(&0));
    }

    #[test]
    fn holds_at_the_same_time_have_no_turns() {
        let mut history = round("a", 0, 1);
        history.extend(round("b", 0, 3));
        let step = heard(&history).unwrap();
        assert_eq!(step.ceiling_per_s, None);
        assert!(step.bound_by.starts_with("nothing"), "{}", step.bound_by);
    }

    #[test]
    fn who_got_nothing_is_counted() {
        let mut history = round("a", 0, 1);
        history.extend(round("b", 2, 13).into_iter().take(1));
        let failed = json!({
            "at_ns": 30 * MS, "worker": "c", "event": "failed", "round": 1, "during": "acquire", "error": "no",
        });
        history.extend(round("c", 3, 14).into_iter().take(1));
        history.push(serde_json::from_value(failed).unwrap());
        let step = heard(&history).unwrap();
        assert_eq!((step.asked, step.acquisitions), (3, 1));
        assert_eq!(step.still_waiting, 1);
        assert_eq!(step.errors["acquire: no"], 1);
        assert_eq!(heard(&[]), None);
    }
}
