//! What every toxic is: a state machine between two queues that is told the
//! time and says when it wants to be asked again.

use super::bandwidth::Bandwidth;
use super::latency::Latency;
use super::limit_data::LimitData;
use super::queue::Queue;
use super::reset_peer::ResetPeer;
use super::slicer::Slicer;
use super::slow_close::SlowClose;
use super::timeout::Timeout;
use crate::toxiproxy::ToxicKind;
use fastrand::Rng;
use tokio::time::Instant;

/// Enough for a full read and little more: a toxic that holds data back is to
/// be felt by whoever sends.
pub const SMALL: usize = 64 << 10;

pub trait Machine: Send {
    /// Moves what can be moved now.
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step;

    /// Takes new attributes over; those of another kind change nothing.
    fn change(&mut self, kind: ToxicKind, now: Instant);

    fn capacity(&self) -> usize {
        SMALL
    }

    /// Whether the connection is of no use any more once this toxic is gone.
    fn closes_when_removed(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// For more input, or for room.
    Wait,
    WaitUntil(Instant),
    /// What has passed arrives, and nothing behind it.
    Close,
    /// Both sides are reset, and nothing arrives.
    Reset,
}

/// None for what lets everything pass.
pub fn machine(kind: ToxicKind, rng: Rng, now: Instant) -> Option<Box<dyn Machine>> {
    let mut machine: Box<dyn Machine> = match kind {
        ToxicKind::Latency { .. } => Box::new(Latency::new(rng)),
        ToxicKind::Bandwidth { .. } => Box::new(Bandwidth::new(now)),
        ToxicKind::SlowClose { .. } => Box::new(SlowClose::default()),
        ToxicKind::Timeout { .. } => Box::new(Timeout::new(now)),
        ToxicKind::ResetPeer { .. } => Box::new(ResetPeer::new(now)),
        ToxicKind::Slicer { .. } => Box::new(Slicer::new(rng, now)),
        ToxicKind::LimitData { .. } => Box::new(LimitData::default()),
        ToxicKind::Noop => return None,
    };
    machine.change(kind, now);
    Some(machine)
}
