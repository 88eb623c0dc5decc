use std::fmt;

/// Why a record does not support a clean answer.
///
/// The reason is data; the text is for people, and nothing is decided by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    pub reason: DoubtReason,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DoubtReason {
    /// The harness itself says so.
    Gap,
    /// Of a fault, by its id.
    Fault { id: u32, what: FaultDoubt },
    /// A fault of the timeline has no row.
    FaultMissing,
    /// The log's positions do not count 1, 2, 3 …, or it is shorter than it was.
    LogNotWhole,
    /// The same row stands in a file twice.
    RowTwice,
    /// Two rows cannot both be true.
    Contradiction,
    /// The clock of a source runs backwards.
    TimesBackwards,
    /// A worker is not done.
    Unfinished { worker: String },
    /// The log does not show what became of a write.
    WriteUnknown,
    /// A metric says something else than the log.
    Metric,
    /// Nothing was put to the test.
    NothingTested,
    /// What is expected is not offered by this lock.
    NotOffered,
}

/// What is not certain about a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FaultDoubt {
    Unproven,
    TooShort,
    WithoutEnd,
    OnlyHealed,
    NotSeenToEnd,
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

/// In results a doubt is what people read.
impl serde::Serialize for Doubt {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}
