use super::{BodyHash, FencingToken};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// One line of a worker's stdout, and one row of `history.jsonl`.
///
/// Unknown fields are accepted on purpose: workers in other languages may report more
/// than the protocol asks for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Event {
    /// CLOCK_MONOTONIC by the raw system call, so that a skewed clock does not affect it.
    pub at_ns: u64,
    /// Filled in by the harness if the worker leaves it out.
    #[serde(default)]
    pub worker: String,
    #[serde(flatten)]
    pub kind: EventKind,
}

#[derive(IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    Ready {
        /// The abilities that this kind of lock lacks, so that nobody waits for them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lacks: Vec<Ability>,
        /// The settings of a task of which this worker can do these values alone, by the names
        /// of their variables. A task with another value does not apply to it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        only: BTreeMap<String, Vec<String>>,
    },
    Acquiring {
        round: u32,
        key: String,
    },
    Acquired {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        /// The random id of this one hold; the resource logs it as `X-Owner`.
        owner: String,
        /// Until when the worker may believe in this hold, by the clock of `at_ns`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        valid_until_ns: Option<u64>,
    },
    /// Another hold on the same grant, by the worker that already has it.
    Reentered {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        /// The number of holds now.
        holds: usize,
    },
    AtGate {
        round: u32,
        gate: Gate,
    },
    Writing {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        owner: String,
        /// The hash of the body that is sent, as the resource logs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        body: Option<BodyHash>,
    },
    WriteAccepted {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        owner: String,
        /// The position in the resource's log that the answer named.
        position: u64,
    },
    WriteRejected {
        round: u32,
        key: String,
        owner: String,
        seen: FencingToken,
        got: FencingToken,
    },
    Renewed {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        /// Until when the worker may believe in its hold from here on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        valid_until_ns: Option<u64>,
    },
    /// The worker learned that its lease is gone.
    Lost {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        reason: String,
    },
    /// One of several holds is released; the grant stays.
    Left {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        /// The number of holds that remain.
        holds: usize,
    },
    Releasing {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
    },
    Released {
        round: u32,
        key: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<FencingToken>,
        outcome: ReleaseOutcome,
    },
    /// A step that gave no usable answer: whether it took effect is unknown.
    Failed {
        round: u32,
        during: Step,
        error: String,
    },
    Done {
        rounds: u32,
    },
    /// The worker cannot do this task, and ends; it comes in the place of `ready`.
    Refused {
        reason: String,
    },
    /// The worker's own clocks, as it sees them: the answer to `{"tell":"clock"}`.
    Clock {
        realtime_ns: i64,
        monotonic_ns: i64,
    },
}

impl EventKind {
    /// Every name that a trigger may use, in the order of a worker's life. A clock is
    /// reported only when asked for, so it is left out.
    pub const NAMES: &[&str] = Self::VARIANTS.split_at(Self::VARIANTS.len() - 1).0;

    pub fn name(&self) -> &'static str {
        self.into()
    }

    /// A worker that can do any task.
    pub fn ready(lacks: Vec<Ability>) -> EventKind {
        let only = BTreeMap::new();
        EventKind::Ready { lacks, only }
    }
}

/// An ability that a lock may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
    /// A fencing token with every grant.
    Token,
    /// A report to the holder whose lease is lost.
    Lost,
}

/// A place where a worker stops and waits for `{"go": …}` on its stdin.
#[derive(Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Before the first acquire of the first round.
    Start,
    AfterAcquire,
    /// After the last lease check, directly before the write is sent.
    BeforeWrite,
    /// Before the first of several holds is released; a single hold has no such gate.
    BeforeLeave,
    BeforeRelease,
    /// Inside the unsafe release, which asks first and deletes later.
    BetweenGetAndDel,
}

impl Gate {
    pub const ALL: &[Gate] = Gate::VARIANTS;

    /// The gates that a scenario may ask for; only the harness uses `start`.
    pub const IN_A_ROUND: &[Gate] = Gate::ALL.split_at(1).1;

    pub fn name(self) -> &'static str {
        self.into()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReleaseOutcome {
    /// The lock was ours and is free now.
    Released,
    /// Nobody held the lock any more: it had expired.
    Expired,
    /// Somebody else holds the lock; nothing was changed.
    Superseded,
    /// Somebody else held the lock, and this release took it from them. Only a release
    /// that asks first and deletes later can do that.
    FreedAnother,
    /// No answer came: the lock may or may not be free.
    Unknown,
}

/// The step of a worker's round that a failure belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    Acquire,
    Read,
    Write,
    Release,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_line_of_json() {
        let event = Event {
            at_ns: 7,
            worker: "a".into(),
            kind: EventKind::AtGate {
                round: 1,
                gate: Gate::BeforeWrite,
            },
        };
        let line = serde_json::to_string(&event).unwrap();
        assert_eq!(
            line,
            r#"{"at_ns":7,"worker":"a","event":"at_gate","round":1,"gate":"before_write"}"#
        );
        assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), event);
    }

    #[test]
    fn a_foreign_worker_may_say_more_and_leave_its_name_out() {
        let event: Event =
            serde_json::from_str(r#"{"at_ns":1,"event":"done","rounds":2,"lang":"py"}"#).unwrap();
        assert_eq!(event.worker, "");
        assert_eq!(event.kind, EventKind::Done { rounds: 2 });
    }
}
