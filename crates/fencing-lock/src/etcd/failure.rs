use crate::LockProblem;
use etcd_client::Error;
use std::time::Duration;
use tonic::{Code, ConnectError, Status};

/// A member's failure to do what it was asked, sorted by its consequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The request cannot have taken effect, and another member may carry it out.
    NotDone(String),
    /// The request may have taken effect, or may still do so.
    Unanswered(String),
    /// The answer is not from an etcd. The request may have taken effect in spite of
    /// that.
    Garbage(String),
    /// The cluster refused, and so would every member.
    Refused(String),
    /// The lease in question is over.
    LeaseGone,
}

impl Failure {
    pub(super) fn too_slow(limit: Duration) -> Failure {
        Failure::Unanswered(format!("nothing within {} ms", limit.as_millis()))
    }

    pub(super) fn may_have_happened(&self) -> bool {
        matches!(self, Failure::Unanswered(_) | Failure::Garbage(_))
    }

    /// Returns whether the failure is about the member that was asked, and not about the
    /// request.
    pub(super) fn is_of_the_member(&self) -> bool {
        !matches!(self, Failure::Refused(_) | Failure::LeaseGone)
    }

    /// Adds the name of the member that failed.
    pub(super) fn at(self, member: &str) -> Failure {
        let at = |text: String| format!("{member}: {text}");
        match self {
            Failure::NotDone(text) => Failure::NotDone(at(text)),
            Failure::Unanswered(text) => Failure::Unanswered(at(text)),
            Failure::Garbage(text) => Failure::Garbage(at(text)),
            Failure::Refused(text) => Failure::Refused(at(text)),
            Failure::LeaseGone => Failure::LeaseGone,
        }
    }
}

impl From<Failure> for LockProblem {
    fn from(failure: Failure) -> LockProblem {
        match failure {
            Failure::NotDone(text) => LockProblem::Unreachable(text),
            Failure::Unanswered(text) => LockProblem::NoAnswer(text),
            Failure::Garbage(text) => LockProblem::BadAnswer(text),
            Failure::Refused(text) => LockProblem::Refused(text),
            Failure::LeaseGone => {
                LockProblem::Refused("the lease of this process is over".to_owned())
            }
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error {
            Error::GRpcStatus(status) => from_status(&status),
            // A keep-alive was answered with a TTL of 0. Other texts are about its stream.
            Error::LeaseKeepAliveError(text) if text == "lease not found" => Failure::LeaseGone,
            Error::InvalidArgs(_) | Error::InvalidUri(_) => Failure::Refused(error.to_string()),
            other => Failure::Unanswered(other.to_string()),
        }
    }
}

/// The errors that etcd returns before it has put a request into its log. Its other
/// errors for "unavailable" (a time-out, a changed leader, a server that stops) come after
/// that, when nobody knows whether the request takes effect.
const BEFORE_THE_LOG: [&str; 3] = [
    "etcdserver: no leader",
    "etcdserver: not leader",
    "etcdserver: too many requests",
];

const LEASE_NOT_FOUND: &str = "etcdserver: requested lease not found";

fn from_status(status: &Status) -> Failure {
    let text = status.message().to_owned();
    if never_connected(status) || BEFORE_THE_LOG.contains(&text.as_str()) {
        return Failure::NotDone(text);
    }
    // An error that etcd's own lock service passes on from within has lost its code.
    let is_of_etcd = text.starts_with("etcdserver:");
    match status.code() {
        Code::NotFound | Code::Unknown if text == LEASE_NOT_FOUND => Failure::LeaseGone,
        Code::Unknown if is_of_etcd => Failure::Unanswered(text),
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Aborted => {
            Failure::Unanswered(text)
        }
        // The transport makes these of bytes that are not HTTP/2 or not gRPC.
        Code::Unknown | Code::Internal | Code::Unimplemented | Code::DataLoss => {
            Failure::Garbage(text)
        }
        _ => Failure::Refused(text),
    }
}

fn never_connected(status: &Status) -> bool {
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(status: Status) -> Failure {
        Failure::from(Error::GRpcStatus(status))
    }

    #[test]
    fn what_may_have_happened_is_never_called_undone() {
        for text in [
            "etcdserver: request timed out",
            "etcdserver: leader changed",
            "etcdserver: server stopped",
            "etcdserver: request timed out, possibly due to previous leader failure",
            "error reading a body from connection",
        ] {
            assert!(
                read(Status::unavailable(text)).may_have_happened(),
                "{text}"
            );
        }
        let no_leader = read(Status::unavailable("etcdserver: no leader"));
        assert!(matches!(no_leader, Failure::NotDone(_)));
        assert!(no_leader.is_of_the_member());
    }

    #[test]
    fn a_lease_that_is_gone_is_told_from_other_refusals() {
        let kept_alive = |text: &str| Failure::from(Error::LeaseKeepAliveError(text.to_owned()));
        assert_eq!(kept_alive("lease not found"), Failure::LeaseGone);
        assert!(kept_alive("channel closed").may_have_happened());
        let gone = Status::not_found("etcdserver: requested lease not found");
        assert_eq!(read(gone), Failure::LeaseGone);
        let passed_on = Status::unknown("etcdserver: requested lease not found");
        assert_eq!(read(passed_on), Failure::LeaseGone);
        let full = read(Status::resource_exhausted(
            "etcdserver: mvcc: database space exceeded",
        ));
        assert!(matches!(full, Failure::Refused(_)));
        assert!(!full.is_of_the_member());
    }
}
