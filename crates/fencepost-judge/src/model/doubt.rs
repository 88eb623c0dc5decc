use super::{FaultKind, UnprovenReason};
use std::fmt;

/// A reason why a record does not support a clear verdict.
///
/// The reason is data; the text is for people, and nothing is decided by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    pub reason: DoubtReason,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoubtReason {
    /// The harness itself noted it.
    Gap,
    /// A doubt about a fault, by its id.
    Fault {
        id: u32,
        kind: FaultKind,
        what: FaultDoubt,
    },
    /// A fault of the timeline has no row, or too few.
    FaultMissing {
        kind: FaultKind,
        targets: Vec<String>,
    },
    /// The log's positions do not count 1, 2, 3 …, or it is shorter than it was.
    LogNotWhole,
    /// A file has the same row twice.
    RowTwice,
    /// Two rows cannot both be true.
    Contradiction,
    /// The clock of a source runs backwards.
    TimesBackwards,
    /// A worker did not finish.
    Unfinished { worker: String },
    /// The log does not show what became of a write.
    WriteUnknown,
    /// A metric contradicts the log.
    Metric,
    /// Nothing was tested.
    NothingTested,
    /// This lock does not offer the expected ability.
    NotOffered,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultDoubt {
    /// The reason, if its rows give one as data.
    Unproven(Option<UnprovenReason>),
    TooShort,
    WithoutEnd,
    OnlyHealed,
    NotSeenToEnd(Option<UnprovenReason>),
}

impl Doubt {
    pub fn new(reason: DoubtReason, text: impl Into<String>) -> Doubt {
        Doubt {
            reason,
            text: text.into(),
        }
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Results contain the text of a doubt.
impl serde::Serialize for Doubt {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
