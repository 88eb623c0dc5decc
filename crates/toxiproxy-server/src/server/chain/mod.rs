//! The toxics of one direction of one connection, in the order in which they
//! were added, with a bounded queue before each and one behind the last.
//!
//! A chain does no I/O and does not wait: it is given data and the time, and returns
//! which data may leave and when it wants to be called again.

mod bandwidth;
mod latency;
mod limit_data;
mod machine;
mod queue;
mod reset_peer;
mod slicer;
mod slow_close;
#[cfg(test)]
mod tests;
mod timeout;

pub use queue::{Chunk, Item, Queue};

use crate::ToxicKind;
use fastrand::Rng;
use machine::{Machine, SMALL, Step, machine};
use std::time::Duration;
use tokio::time::Instant;

pub struct Chain {
    stages: Vec<Stage>,
    out: Queue,
    /// Whether the input has ended.
    input_over: bool,
    /// The last toxic that closed the stream; everything before it is cut off.
    closed_by: Option<u64>,
}

/// One toxic for one connection.
pub struct Dose {
    /// Grows with every toxic that is added, so it is the order of the chain.
    pub id: u64,
    pub kind: ToxicKind,
    pub rng: Rng,
}

struct Stage {
    id: u64,
    kind: ToxicKind,
    machine: Box<dyn Machine>,
    inbox: Queue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Call again at this time, or when data comes in or has left.
    Wait(Option<Instant>),
    Reset,
}

impl Chain {
    pub fn new() -> Chain {
        Chain {
            stages: Vec::new(),
            out: Queue::new(SMALL),
            input_over: false,
            closed_by: None,
        }
    }

    /// Whether data can bypass the chain.
    pub fn is_idle(&self) -> bool {
        self.stages.is_empty() && self.out.is_empty() && !self.input_over
    }

    pub fn takes_input(&self) -> bool {
        let first = self.stages.first().map_or(&self.out, |stage| &stage.inbox);
        !self.input_over && first.has_room()
    }

    pub fn push(&mut self, item: Item) {
        self.input_over |= item == Item::End;
        self.entrance(0).push(item);
    }

    pub fn out(&mut self) -> &mut Queue {
        &mut self.out
    }

    /// Lets every toxic do what it can at this time.
    pub fn advance(&mut self, now: Instant) -> Turn {
        loop {
            let mut wake: Option<Instant> = None;
            let mut moved = false;
            let mut at = 0;
            while at < self.stages.len() {
                let (before, after) = self.stages.split_at_mut(at + 1);
                let stage = &mut before[at];
                let output = after
                    .first_mut()
                    .map_or(&mut self.out, |next| &mut next.inbox);
                let sizes = (stage.inbox.size(), output.size());
                match stage.machine.step(&mut stage.inbox, output, now) {
                    Step::Wait => {}
                    Step::WaitUntil(time) => wake = Some(wake.map_or(time, |w| w.min(time))),
                    Step::Reset => return Turn::Reset,
                    Step::Close => {
                        self.close_behind(at);
                        moved = true;
                        break;
                    }
                }
                moved |= sizes != (stage.inbox.size(), output.size());
                at += 1;
            }
            // Data that has moved may have made room for waiting data.
            if !moved {
                return Turn::Wait(wake);
            }
        }
    }

    /// Becomes the chain of these toxics, without losing the data under way.
    pub fn follow(&mut self, doses: Vec<Dose>, now: Instant) {
        let closed_by = self.closed_by;
        let is_open = |dose: &Dose| closed_by.is_none_or(|id| dose.id > id);
        let doses: Vec<Dose> = doses.into_iter().filter(is_open).collect();
        // Go from the end, so that data of a removed toxic does not pass through another
        // removed one.
        for at in (0..self.stages.len()).rev() {
            if doses.iter().all(|dose| dose.id != self.stages[at].id) {
                self.remove(at);
                if self.closed_by != closed_by {
                    break;
                }
            }
        }
        for dose in doses {
            if self.closed_by.is_none_or(|id| dose.id > id) {
                self.set(dose, now);
            }
        }
    }

    fn set(&mut self, dose: Dose, now: Instant) {
        let place = self.stages.binary_search_by_key(&dose.id, |stage| stage.id);
        match place {
            Ok(at) if self.stages[at].kind == dose.kind => {}
            Ok(at) => {
                let stage = &mut self.stages[at];
                stage.machine.change(dose.kind, now);
                stage.kind = dose.kind;
                stage.inbox.resize(stage.machine.capacity());
            }
            Err(at) => {
                if let Some(machine) = machine(dose.kind, dose.rng, now) {
                    let inbox = Queue::new(machine.capacity());
                    let Dose { id, kind, .. } = dose;
                    let stage = Stage {
                        id,
                        kind,
                        machine,
                        inbox,
                    };
                    self.stages.insert(at, stage);
                }
            }
        }
    }

    fn remove(&mut self, at: usize) {
        if self.stages[at].machine.closes_when_removed() {
            return self.close_behind(at);
        }
        let removed = self.stages.remove(at);
        self.entrance(at).take_over(removed.inbox);
    }

    /// Drops everything up to this stage, and ends the stream there.
    fn close_behind(&mut self, at: usize) {
        self.closed_by = Some(self.stages[at].id);
        self.stages.drain(..=at);
        self.input_over = true;
        self.entrance(0).push(Item::End);
    }

    fn entrance(&mut self, at: usize) -> &mut Queue {
        match self.stages.get_mut(at) {
            Some(stage) => &mut stage.inbox,
            None => &mut self.out,
        }
    }
}
