use std::error::Error;

/// An error of a call. It names the call, and with it the proxy and the toxic in
/// question.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToxiproxyError {
    #[error("{base:?} is no address of a Toxiproxy: {reason}; http://127.0.0.1:8474 would be one")]
    Address { base: String, reason: String },
    #[error(
        "cannot send the token: it has characters that cannot stand in a header; choose another token"
    )]
    Token,
    /// Nothing was sent.
    #[error("{call} cannot be sent: {name:?} cannot stand in a path; choose another name")]
    Name { call: String, name: String },
    #[error("Toxiproxy refused {call} ({status}): {message}")]
    Refused {
        call: String,
        status: u16,
        message: String,
    },
    /// Whether the call took effect is unknown.
    #[error("no usable answer from Toxiproxy at {base} to {call}: {reason}; is it running there?")]
    NoAnswer {
        call: String,
        base: String,
        reason: String,
    },
}

impl ToxiproxyError {
    /// Returns the server's status, if it answered.
    pub fn status(&self) -> Option<u16> {
        match self {
            ToxiproxyError::Refused { status, .. } => Some(*status),
            _ => None,
        }
    }
}

/// Adds the causes: reqwest names them only in the sources of its errors.
pub(super) fn with_causes(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
