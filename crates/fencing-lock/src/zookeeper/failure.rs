use crate::LockProblem;
use std::time::Duration;
use thiserror::Error;

/// The reason why a request brought no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum Failure {
    #[error("{0}")]
    Unreachable(String),
    /// The request may have been carried out.
    #[error("{0}")]
    Unanswered(String),
    /// The session is over, and everything that it made goes with it.
    #[error("the session is over")]
    SessionOver,
    #[error("there is no such node")]
    NoNode,
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Garbage(String),
    #[error("the servers keep a session for {kept:?}, and not for {ttl:?}")]
    TtlNotKept { ttl: Duration, kept: Duration },
}

impl Failure {
    /// Returns whether the same request may succeed later.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Failure::Unreachable(_) | Failure::Unanswered(_))
    }
}

impl From<zookeeper_client::Error> for Failure {
    fn from(error: zookeeper_client::Error) -> Failure {
        use zookeeper_client::Error;
        let words = format!("{error}{}", remedy(&error));
        match error {
            Error::NoNode => Failure::NoNode,
            Error::SessionExpired | Error::SessionMoved | Error::ClientClosed => {
                Failure::SessionOver
            }
            Error::NoHosts => Failure::Unreachable("no server offers a session".to_owned()),
            Error::UnmarshalError { .. } => Failure::Garbage(words),
            Error::NoAuth
            | Error::AuthFailed
            | Error::InvalidAcl
            | Error::BadArguments(_)
            | Error::NoChildrenForEphemerals
            | Error::NodeExists
            | Error::NotEmpty
            | Error::BadVersion
            | Error::NotReadOnly
            | Error::QuotaExceeded
            | Error::MarshallingError
            | Error::Unimplemented
            | Error::UnexpectedErrorCode(_) => Failure::Refused(words),
            // The client library reports the end of a connection in many words.
            _ => Failure::Unanswered(words),
        }
    }
}

fn remedy(error: &zookeeper_client::Error) -> &'static str {
    use zookeeper_client::Error;
    match error {
        Error::NoAuth | Error::AuthFailed | Error::InvalidAcl => {
            "; somebody else made /fencing-lock or a node below it: give world:anyone all rights on it"
        }
        Error::NoChildrenForEphemerals => {
            "; somebody else made the node of this lock, below /fencing-lock/locks: delete it"
        }
        Error::NotReadOnly => "; this member has no majority: name all members",
        Error::QuotaExceeded => "; raise the quota of /fencing-lock",
        _ => "",
    }
}

impl From<Failure> for LockProblem {
    fn from(failure: Failure) -> LockProblem {
        let words = failure.to_string();
        match failure {
            Failure::Unreachable(_) => LockProblem::Unreachable(words),
            Failure::Unanswered(_) => LockProblem::NoAnswer(words),
            // What was asked may have happened before.
            Failure::SessionOver => LockProblem::NoAnswer(words),
            Failure::NoNode | Failure::Garbage(_) => LockProblem::BadAnswer(words),
            Failure::Refused(_) => LockProblem::Refused(words),
            Failure::TtlNotKept { ttl, kept } => {
                let bound = if kept > ttl { "at least" } else { "at most" };
                let kept = kept.as_millis();
                let said =
                    format!("the servers allow {bound} {kept} ms; change it, or their limits");
                LockProblem::TtlNotKept { ttl, said }
            }
        }
    }
}
