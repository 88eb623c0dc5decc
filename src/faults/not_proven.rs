use super::*;
use crate::model::Gap;
use std::fmt;

/// Fails with this reason if the condition does not hold.
pub fn ensure(holds: bool, otherwise: UnprovenReason) -> Proof {
    holds.then_some(()).ok_or(otherwise)
}

/// A fault that is not proven, or could not be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotProven {
    /// The id of its rows; None if it has no row.
    pub fault: Option<u32>,
    pub text: String,
    /// There was nobody that it could be done to.
    pub is_of_nothing: bool,
}

impl NotProven {
    pub fn new(fault: Option<u32>, kind: FaultKind, target: &str, why: &UnprovenReason) -> Self {
        let text = format!("{kind} of {target}: {why}");
        NotProven {
            fault,
            text,
            is_of_nothing: why.is_of_nothing(),
        }
    }
}

impl fmt::Display for NotProven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Makes a fault without a row.
impl From<UnprovenReason> for NotProven {
    fn from(reason: UnprovenReason) -> NotProven {
        NotProven {
            fault: None,
            text: reason.to_string(),
            is_of_nothing: reason.is_of_nothing(),
        }
    }
}

impl From<NotProven> for Gap {
    fn from(NotProven { fault, text, .. }: NotProven) -> Gap {
        Gap { fault, text }
    }
}

impl From<ClusterError> for UnprovenReason {
    fn from(error: ClusterError) -> UnprovenReason {
        UnprovenReason::Cluster {
            error: error.to_string(),
        }
    }
}
