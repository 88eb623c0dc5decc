use super::*;

#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(
        "Docker does not answer at {host}: {reason}\nstart the Docker Engine, or set DOCKER_HOST; `fencepost doctor` says more"
    )]
    Unreachable { host: String, reason: String },
    #[error(
        "DOCKER_HOST is {host:?}, which cannot be used: {reason}\nset it to unix:///PATH or tcp://HOST:PORT, or unset it"
    )]
    BadHost { host: String, reason: String },
    #[error(
        "cannot run anything on the Docker Engine at {host}: {reason}\nrun fencepost on the engine's own machine, for instance with ssh, or unset DOCKER_HOST"
    )]
    Elsewhere { host: String, reason: String },
    #[error("{what} is missing\n{remedy}")]
    Missing { what: String, remedy: String },
    #[error("cannot use {place}: {reason}; {remedy}")]
    NoServer {
        place: String,
        reason: String,
        remedy: String,
    },
    #[error("gave up after {} s waiting for: {what}", .after.as_secs())]
    Deadline { what: String, after: Duration },
    #[error("could not {what}: {reason}")]
    Failed { what: String, reason: String },
    #[error("could not {what}: it is not there any more")]
    Gone { what: String },
    #[error("could not {what}: this runtime has no way to do it")]
    NotHere { what: String },
    #[error("{node} did not get ready: {reason}{log}")]
    NotReady {
        node: String,
        reason: String,
        /// Its last lines, shown below the message.
        log: String,
    },
    #[error(
        "{reason}\nnothing is on it any more, whatever the engine counts: restarting the engine frees it"
    )]
    StuckNetwork { reason: String },
    #[error("left behind, remove with `fencepost clean`: {}", .0.join(", "))]
    LeftBehind(Vec<String>),
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

pub type ClusterResult<T = ()> = Result<T, ClusterError>;

impl ClusterError {
    /// Makes an error; `what` completes "could not …".
    pub fn failed(what: impl Into<String>, reason: impl ToString) -> ClusterError {
        ClusterError::Failed {
            what: what.into(),
            reason: reason.to_string(),
        }
    }

    pub fn deadline(what: impl Into<String>, after: Duration) -> ClusterError {
        let what = what.into();
        ClusterError::Deadline { what, after }
    }

    pub fn missing(what: impl Into<String>, remedy: impl Into<String>) -> ClusterError {
        ClusterError::Missing {
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}
