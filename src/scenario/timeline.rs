//! What is due when an event comes. Pure: events in, due steps out; the
//! caller owns the clock and carries the steps out.

use super::{Action, Scenario, Trigger};
use std::collections::HashMap;
use std::time::Duration;

/// Something to be done because an event came.
#[derive(Clone, Debug, PartialEq)]
pub struct Due {
    pub after: Duration,
    pub step: Step,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Open a worker's start gate.
    Start {
        worker: String,
    },
    Fault {
        action: Action,
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
    pub fn new(scenario: &Scenario) -> Timeline {
        let starts = scenario.workers.iter().filter_map(|worker| {
            Some(Armed {
                when: worker.start.clone()?,
                due: Some(Due {
                    after: Duration::ZERO,
                    step: Step::Start {
                        worker: worker.name.clone(),
                    },
                }),
            })
        });
        let faults = scenario.timeline.iter().map(|entry| Armed {
            when: entry.when.clone(),
            due: Some(Due {
                after: entry.after,
                step: Step::Fault {
                    action: entry.action.clone(),
                },
            }),
        });
        Timeline {
            armed: starts.chain(faults).collect(),
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
}
