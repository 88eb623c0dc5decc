//! The trait of every toxic: a state machine between two queues that is given the time
//! and returns when it wants to be called again.

use super::bandwidth::Bandwidth;
use super::latency::Latency;
use super::limit_data::LimitData;
use super::reset_peer::ResetPeer;
use super::slicer::Slicer;
use super::slow_close::SlowClose;
use super::timeout::Timeout;
use super::*;

/// Enough for a full read and little more: the sender has to feel a toxic that holds data
/// back.
pub const SMALL: usize = 64 << 10;

pub trait Machine: Send {
    /// Moves everything that can be moved now.
    fn step(&mut self, input: &mut Queue, output: &mut Queue, now: Instant) -> Step;

    /// Applies new attributes; those of another kind change nothing.
    fn change(&mut self, kind: ToxicKind, now: Instant);

    fn capacity(&self) -> usize {
        SMALL
    }

    /// Returns whether the connection becomes useless once this toxic is removed.
    fn closes_when_removed(&self) -> bool {
        false
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Wait for more input, or for room.
    Wait,
    WaitUntil(Instant),
    /// Data that has passed arrives, and nothing after it.
    Close,
    /// Both sides are reset, and nothing arrives.
    Reset,
}

/// Returns `None` for a toxic that passes everything.
pub fn machine(kind: ToxicKind, rng: Rng, now: Instant) -> Option<Box<dyn Machine>> {
    let mut machine: Box<dyn Machine> = match kind {
        ToxicKind::Latency { .. } => Box::new(Latency::new(rng)),
        ToxicKind::Bandwidth { .. } => Box::new(Bandwidth {
            bytes_per_ms: 0,
            free_at: now,
        }),
        ToxicKind::SlowClose { .. } => Box::new(SlowClose::default()),
        ToxicKind::Timeout { .. } => Box::new(Timeout {
            after: Duration::ZERO,
            quiet_since: now,
        }),
        ToxicKind::ResetPeer { .. } => Box::new(ResetPeer {
            holds_since: now,
            after: Duration::ZERO,
        }),
        ToxicKind::Slicer { .. } => Box::new(Slicer::new(rng, now)),
        ToxicKind::LimitData { .. } => Box::new(LimitData::default()),
        ToxicKind::Noop => return None,
    };
    machine.change(kind, now);
    Some(machine)
}
