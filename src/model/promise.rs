use serde::Serialize;
use std::fmt;

/// What a lock promises; docs/judge.md says how each is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Promise {
    /// Nobody is granted a key while another's covered time lasts.
    Exclusion,
    /// Later grants have higher tokens.
    Tokens,
    /// Nobody is told of a grant that is over already.
    Timeliness,
    /// A release frees nothing but one's own hold.
    Release,
    /// A holder stops claiming by the end of its validity.
    Loss,
    /// A free key is granted to whoever asks for it.
    Progress,
    /// Grants follow arrivals.
    Order,
    /// A renewal prolongs, and never re-creates.
    Renewal,
}

impl Promise {
    pub const ALL: [Promise; 8] = [
        Promise::Exclusion,
        Promise::Tokens,
        Promise::Timeliness,
        Promise::Release,
        Promise::Loss,
        Promise::Progress,
        Promise::Order,
        Promise::Renewal,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Promise::Exclusion => "exclusion",
            Promise::Tokens => "tokens",
            Promise::Timeliness => "timeliness",
            Promise::Release => "release",
            Promise::Loss => "loss",
            Promise::Progress => "progress",
            Promise::Order => "order",
            Promise::Renewal => "renewal",
        }
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What became of a promise in a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// It was put to the test, and held.
    Kept,
    Broken,
    /// Broken, and every time a proven fault explains it.
    Excused,
    /// Nothing in the case put it to the test.
    NotTested,
    /// The record says too little, and why.
    NotChecked(String),
    /// This lock does not promise it.
    NotOffered,
}

impl Kept {
    /// One word for results and tables.
    pub fn word(&self) -> &'static str {
        match self {
            Kept::Kept => "kept",
            Kept::Broken => "broken",
            Kept::Excused => "excused",
            Kept::NotTested => "not_tested",
            Kept::NotChecked(_) => "not_checked",
            Kept::NotOffered => "not_offered",
        }
    }

    /// Why it was not checked.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Kept::NotChecked(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Whether the lock under test kept its word in a case, whatever the scenario expects.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum LockOutcome {
    Broken,
    /// Every break is explained by a proven fault.
    Excused,
    /// Nobody asked for a key that was held, or the record does not tell: a lock
    /// that excludes nobody would have come out the same.
    NotTested,
    Kept,
}

impl LockOutcome {
    pub const ALL: [LockOutcome; 4] = [
        LockOutcome::Broken,
        LockOutcome::Excused,
        LockOutcome::NotTested,
        LockOutcome::Kept,
    ];
}

impl fmt::Display for LockOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LockOutcome::Broken => "the lock broke its promises",
            LockOutcome::Excused => "the lock broke its promises, and a proven fault explains it",
            LockOutcome::NotTested => "the lock was not put to the test",
            LockOutcome::Kept => "the lock kept its promises",
        })
    }
}
