//! What is due when an event comes. Pure: events in, due acts out; the
//! caller owns the clock and carries them out.

use super::{Entry, Repeat, Setup, Step, Trigger};
use crate::model::{Fault, Name};
use std::collections::HashMap;
use std::time::Duration;

/// Something to be done because an event came.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    pub after: Duration,
    pub what: What,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// Open a worker's start gate.
    Start { worker: Name },
    /// Carry out an entry of the timeline.
    Act {
        name: Option<String>,
        /// As often as the entry repeats, one time after the other.
        rounds: Vec<Vec<Act>>,
        /// No round begins later than this after the event, and of a round that
        /// has begun only what ends something.
        until: Option<Duration>,
    },
}

/// A step of the timeline with nothing left to chance.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Inject {
        fault: Fault,
        lasting: Option<Duration>,
    },
    Resume {
        node: Name,
    },
    Thaw {
        node: Name,
    },
    Heal {
        entry: String,
    },
    Wait {
        how_long: Duration,
    },
    Await {
        event: Trigger,
    },
    Together {
        acts: Vec<Act>,
    },
}

struct Armed {
    when: Trigger,
    due: Option<Due>,
}

/// Every entry is armed from the start and fires once, when its event has come
/// as often as it asks for.
pub struct Timeline {
    armed: Vec<Armed>,
    seen: HashMap<(String, String), u32>,
}

impl Timeline {
    /// Everything left to chance is drawn here, so one seed is one timeline.
    pub fn new(setup: &Setup, seed: u64) -> Timeline {
        let mut random = fastrand::Rng::with_seed(seed);
        let starts = setup.workers.iter().filter_map(|worker| {
            Some(Armed {
                when: worker.start.clone()?,
                due: Some(Due {
                    after: Duration::ZERO,
                    what: What::Start {
                        worker: worker.name.clone(),
                    },
                }),
            })
        });
        let duration = setup.duration.unwrap_or_default();
        let entries = setup.timeline.iter().map(|entry| Armed {
            when: entry.when.clone(),
            due: Some(draw_entry(entry, duration, &mut random)),
        });
        Timeline {
            armed: starts.chain(entries).collect(),
            seen: HashMap::new(),
        }
    }

    /// Takes note of one event and hands out what it sets off.
    pub fn event(&mut self, source: &str, event: &str) -> Vec<Due> {
        let count = self
            .seen
            .entry((source.to_owned(), event.to_owned()))
            .or_insert(0);
        *count += 1;
        let count = *count;
        let hit = |armed: &&mut Armed| {
            armed.when.source == source
                && armed.when.event == event
                && armed.when.occurrence == count
        };
        self.armed
            .iter_mut()
            .filter(hit)
            .filter_map(|armed| armed.due.take())
            .collect()
    }

    /// The events that somebody still waits for.
    pub fn awaited(&self) -> Vec<&Trigger> {
        self.armed
            .iter()
            .filter(|armed| armed.due.is_some())
            .map(|armed| &armed.when)
            .collect()
    }

    /// Every fault that may be injected, as it was drawn.
    pub fn faults(&self) -> Vec<&Fault> {
        let dues = self.armed.iter().filter_map(|armed| armed.due.as_ref());
        let rounds = dues.flat_map(|due| match &due.what {
            What::Act { rounds, .. } => rounds.as_slice(),
            What::Start { .. } => &[],
        });
        rounds.flatten().flat_map(Act::faults).collect()
    }
}

impl Act {
    /// Undoes something and begins nothing.
    pub fn lets_go_on(&self) -> bool {
        matches!(
            self,
            Act::Resume { .. } | Act::Thaw { .. } | Act::Heal { .. }
        )
    }

    /// Whether nothing of it stays, and it undoes nothing.
    pub fn is_complete_in_itself(&self) -> bool {
        match self {
            Act::Inject { lasting, .. } => lasting.is_some(),
            Act::Wait { .. } | Act::Await { .. } => true,
            Act::Together { acts } => acts.iter().all(Act::is_complete_in_itself),
            Act::Resume { .. } | Act::Thaw { .. } | Act::Heal { .. } => false,
        }
    }

    /// At least, beside what proofs take.
    fn takes(&self) -> Duration {
        match self {
            Act::Inject { lasting, .. } => lasting.unwrap_or_default(),
            Act::Wait { how_long } => *how_long,
            Act::Together { acts } => acts.iter().map(Act::takes).max().unwrap_or_default(),
            _ => Duration::ZERO,
        }
    }

    fn faults(&self) -> Vec<&Fault> {
        match self {
            Act::Inject { fault, .. } => vec![fault],
            Act::Together { acts } => acts.iter().flat_map(Act::faults).collect(),
            _ => Vec::new(),
        }
    }
}

/// A timeline is drawn before it begins, so what is repeated throughout has a
/// bound.
const MOST_ROUNDS: u32 = 10_000;

fn draw_entry(entry: &Entry, duration: Duration, random: &mut fastrand::Rng) -> Due {
    let after = entry.after.draw(random);
    let mut rounds = Vec::new();
    let until = match entry.repeat {
        Repeat::Times(times) => {
            rounds.extend((0..times).map(|_| draw_all(&entry.steps, random)));
            None
        }
        Repeat::Throughout => {
            // Proofs take time as well, so these are enough.
            let mut taken = after;
            while taken < duration && rounds.len() < MOST_ROUNDS as usize {
                let round = draw_all(&entry.steps, random);
                taken += round.iter().map(Act::takes).sum::<Duration>();
                rounds.push(round);
            }
            Some(duration)
        }
    };
    Due {
        after,
        what: What::Act {
            name: entry.name.clone(),
            rounds,
            until,
        },
    }
}

fn draw_all(steps: &[Step], random: &mut fastrand::Rng) -> Vec<Act> {
    steps.iter().map(|step| draw(step, random)).collect()
}

fn draw(step: &Step, random: &mut fastrand::Rng) -> Act {
    match step {
        Step::Inject { choices, lasting } => Act::Inject {
            fault: choices[random.usize(..choices.len())].clone(),
            lasting: lasting.map(|span| span.draw(random)),
        },
        Step::Resume { node } => Act::Resume { node: node.clone() },
        Step::Thaw { node } => Act::Thaw { node: node.clone() },
        Step::Heal { entry } => Act::Heal {
            entry: entry.clone(),
        },
        Step::Wait { span } => Act::Wait {
            how_long: span.draw(random),
        },
        Step::Await { event } => Act::Await {
            event: event.clone(),
        },
        Step::Together { steps } => Act::Together {
            acts: draw_all(steps, random),
        },
    }
}
