//! The steps that are due when an event comes. This is pure: events go in, due steps come out; the
//! caller owns the clock and carries them out.

use super::step::Refine;
use super::*;
use std::collections::HashMap;

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
        /// The steps, as often as the entry repeats them, one time after the other.
        rounds: Vec<Vec<DrawnStep>>,
        /// No round begins later than this after the event. Of a round that has begun by then,
        /// the steps that are complete in themselves are skipped; its faults are still ended.
        until: Option<Duration>,
    },
}

struct Armed {
    when: Trigger,
    due: Option<Due>,
}

/// The timeline of a case. Every entry is armed from the start and fires once, when its event has
/// come as often as the entry asks for.
pub struct Timeline {
    armed: Vec<Armed>,
    seen: HashMap<(String, String), u32>,
}

impl Timeline {
    /// Draws everything that is left to chance, so one seed is one timeline.
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

    /// Counts one event and returns what it triggers.
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

    pub fn awaited(&self) -> Vec<&Trigger> {
        self.armed
            .iter()
            .filter(|armed| armed.due.is_some())
            .map(|armed| &armed.when)
            .collect()
    }

    /// Returns whether a worker has not been started yet.
    pub fn holds(&self, name: &Name) -> bool {
        let mut dues = self.armed.iter().filter_map(|armed| armed.due.as_ref());
        dues.any(|due| matches!(&due.what, What::Start { worker } if worker == name))
    }

    /// Returns every fault that may be injected, as it was drawn.
    pub fn faults(&self) -> Vec<&Fault> {
        let dues = self.armed.iter().filter_map(|armed| armed.due.as_ref());
        let rounds = dues.flat_map(|due| match &due.what {
            What::Act { rounds, .. } => rounds.as_slice(),
            What::Start { .. } => &[],
        });
        rounds.flatten().flat_map(Step::faults).collect()
    }
}

/// Returns how long a step takes at least, without its proofs.
fn takes(step: &DrawnStep) -> Duration {
    if let Step::Together { steps } = step {
        steps.iter().map(takes).max().unwrap_or_default()
    } else {
        step.length().copied().unwrap_or_default()
    }
}

/// A timeline is drawn before it begins, so steps that are repeated throughout have a bound.
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
            // Proofs take time as well, so these rounds are enough.
            let mut taken = after;
            while taken < duration && rounds.len() < MOST_ROUNDS as usize {
                let round = draw_all(&entry.steps, random);
                taken += round.iter().map(takes).sum::<Duration>();
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

/// Draws one of several faults, and a length between bounds.
struct Draw<'a>(&'a mut fastrand::Rng);

impl Refine<Vec<Fault>, End, Span> for Draw<'_> {
    type Fault = Fault;
    type End = End;
    type Length = Duration;

    fn fault(&mut self, choices: &Vec<Fault>) -> Option<Fault> {
        choices.get(self.0.usize(..choices.len())).cloned()
    }

    fn end(&mut self, end: &End) -> Option<End> {
        Some(end.clone())
    }

    fn length(&mut self, span: &Span) -> Duration {
        span.draw(self.0)
    }
}

fn draw_all(steps: &[PlannedStep], random: &mut fastrand::Rng) -> Vec<DrawnStep> {
    // Every step has at least one fault to draw from.
    Draw(random).steps(steps).unwrap_or_default()
}
