use super::MAX_KEY_BYTES;
use std::time::Duration;
use thiserror::Error;

/// A problem, with the lock and the server that it is about.
#[derive(Clone, Debug, Error)]
#[error("{backend} lock {key:?} on {node}: {problem}")]
pub struct LockError {
    pub backend: &'static str,
    pub node: String,
    pub key: String,
    #[source]
    pub problem: LockProblem,
}

impl LockError {
    /// Makes an error. The key is empty if the error is about the whole backend.
    pub fn new(
        backend: &'static str,
        node: impl Into<String>,
        key: impl Into<String>,
        problem: LockProblem,
    ) -> LockError {
        let (node, key) = (node.into(), key.into());
        LockError {
            backend,
            node,
            key,
            problem,
        }
    }
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
    #[error("a TTL of {} s is beyond a day; a lock that long is a stuck one", .ttl.as_secs())]
    TtlTooLong { ttl: Duration },
    #[error("a TTL of {} ms is over within the {} ms that clocks may drift", .ttl.as_millis(), .drift.as_millis())]
    TtlWithinDrift { ttl: Duration, drift: Duration },
    /// The servers would keep the lock for another time, and its waiters would not expect that.
    #[error("a TTL of {} ms cannot be kept: {said}", .ttl.as_millis())]
    TtlNotKept { ttl: Duration, said: String },
    /// There was no connection, so nothing was asked and nothing can have happened.
    #[error("no connection: {0}")]
    Unreachable(String),
    /// The request was sent and not answered: whether it took effect is unknown.
    #[error("no answer: {0}")]
    NoAnswer(String),
    /// The answer does not follow the protocol.
    #[error("not a usable answer: {0}")]
    BadAnswer(String),
    /// The server understood the request and refused it.
    #[error("refused: {0}")]
    Refused(String),
    /// The line is as long as the settings allow.
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
    /// Too many nodes failed to reach a decision.
    #[error("{answered} of {nodes} nodes answered and {quorum} are needed: {failures}")]
    NoQuorum {
        answered: usize,
        quorum: usize,
        nodes: usize,
        /// One entry for each node.
        failures: String,
    },
    /// The lock was granted, and its TTL was over when the answer came.
    #[error("granted, but only after {} ms, when its time was over", .took.as_millis())]
    TooLate { took: Duration },
    #[error("not acquired within {} ms{}", .waited.as_millis(), last_words(.last))]
    Timeout {
        waited: Duration,
        /// What was heard last, if it was a problem; absent if it was "busy".
        last: Option<Box<LockProblem>>,
    },
}

impl LockProblem {
    /// Returns whether the request may have taken effect in spite of the problem.
    pub fn may_have_happened(&self) -> bool {
        matches!(
            self,
            LockProblem::NoAnswer(_)
                | LockProblem::BadAnswer(_)
                | LockProblem::Refused(_)
                | LockProblem::QueueFull { .. }
                | LockProblem::NoQuorum { .. }
                | LockProblem::TooLate { .. }
        )
    }

    /// Returns whether waiting longer would not help, so that the caller has to learn of
    /// it now.
    pub fn is_final(&self) -> bool {
        matches!(
            self,
            LockProblem::QueueFull { .. }
                | LockProblem::TtlWithinDrift { .. }
                | LockProblem::TtlNotKept { .. }
        )
    }
}

fn last_words(last: &Option<Box<LockProblem>>) -> String {
    match last {
        Some(problem) => format!("; at last: {problem}"),
        None => "; at last, somebody else held it".to_owned(),
    }
}
