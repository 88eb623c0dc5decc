use super::MAX_KEY_BYTES;
use crate::model::format_duration;
use std::time::Duration;
use thiserror::Error;

/// What went wrong, on which lock and where.
#[derive(Clone, Debug, Error)]
#[error("{backend} lock {key:?} on {node}: {problem}")]
pub struct LockError {
    pub backend: &'static str,
    pub node: String,
    pub key: String,
    #[source]
    pub problem: LockProblem,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LockProblem {
    #[error("{address:?} is no address of a server: {reason} (write host:port)")]
    BadAddress { address: String, reason: String },
    #[error("the key is empty; name what the lock protects")]
    KeyEmpty,
    #[error("the key has {length_bytes} bytes; at most {MAX_KEY_BYTES} are allowed")]
    KeyTooLong { length_bytes: usize },
    #[error("the key holds a control character")]
    KeyControlCharacter,
    #[error("a TTL below a millisecond would end before anybody could hold the lock")]
    TtlTooShort,
    #[error("a TTL of {} is beyond a day; a lock that long is a stuck one", format_duration(*.ttl))]
    TtlTooLong { ttl: Duration },
    #[error("a TTL of {} ms is over within the {} ms that clocks may drift", .ttl.as_millis(), .drift.as_millis())]
    TtlWithinDrift { ttl: Duration, drift: Duration },
    /// No connection, so nothing was asked and nothing can have happened.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// Asked, and not answered: whether it took effect is unknown.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// Answered in a way that is not this protocol.
    #[error("not a usable answer: {0}")]
    BadAnswer(String),
    /// The server understood and said no.
    #[error("refused: {0}")]
    Refused(String),
    /// The wait would be longer than somebody decided that waits may be.
    #[error("{waiting} are waiting already, and at most {max} may")]
    QueueFull { waiting: usize, max: usize },
    #[error("a quorum of {quorum} out of {nodes} nodes {reason}")]
    BadQuorum {
        quorum: usize,
        nodes: usize,
        reason: &'static str,
    },
    #[error("{0}")]
    BadServers(String),
    /// Too many of the nodes failed for anything to be decided.
    #[error("{answered} of {nodes} nodes answered and {quorum} are needed: {failures}")]
    NoQuorum {
        answered: usize,
        quorum: usize,
        nodes: usize,
        /// Node by node.
        failures: String,
    },
    #[error("not acquired within {} ms{}", .waited.as_millis(), last_words(.last))]
    Timeout {
        waited: Duration,
        /// Why the last try failed; absent when it was answered with "busy".
        last: Option<Box<LockProblem>>,
    },
}

impl LockProblem {
    /// Whether the request may have taken effect all the same.
    pub fn may_have_happened(&self) -> bool {
        matches!(
            self,
            LockProblem::NoAnswer(_)
                | LockProblem::BadAnswer(_)
                | LockProblem::Refused(_)
                | LockProblem::QueueFull { .. }
                | LockProblem::NoQuorum { .. }
        )
    }

    /// Whether waiting longer would not help: who asks has to hear it now.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            LockProblem::QueueFull { .. } | LockProblem::TtlWithinDrift { .. }
        )
    }
}

fn last_words(last: &Option<Box<LockProblem>>) -> String {
    match last {
        Some(problem) => format!("; at last: {problem}"),
        None => "; somebody else holds it".to_owned(),
    }
}
