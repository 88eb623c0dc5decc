use serde::{Deserialize, Serialize};
use strum::{Display, EnumMessage, IntoStaticStr, VariantArray};

/// What a lock promises; docs/judge.md says how each is decided.
#[derive(Display, EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
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
    pub const ALL: &[Promise] = Promise::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the sentence above its variant, as pages print it.
    pub fn means(self) -> &'static str {
        self.get_documentation().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, IntoStaticStr, Serialize)]
#[serde(tag = "outcome", content = "reason", rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Kept {
    /// It was tested, and kept.
    Kept,
    Broken,
    /// It was broken, and a proven fault explains every break.
    Excused,
    /// Nothing in the case tested it.
    NotTested,
    /// The record has too little data, for this reason.
    NotChecked(String),
    /// This lock does not promise it.
    NotOffered,
}

impl Kept {
    /// Returns one word for results and tables.
    pub fn word(&self) -> &'static str {
        self.into()
    }

    pub fn reason(&self) -> Option<&str> {
        match self {
            Kept::NotChecked(reason) => Some(reason),
            _ => None,
        }
    }
}

/// Whether the lock under test kept its word in a case, whatever the scenario expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[derive(Display, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum LockOutcome {
    #[strum(to_string = "the lock broke its promises")]
    Broken,
    /// Every break is explained by a proven fault.
    #[strum(to_string = "the lock broke its promises, and a proven fault explains it")]
    Excused,
    /// Nobody asked for a key that was held, or the record does not tell: a lock
    /// that excludes nobody would have come out the same.
    #[strum(to_string = "the lock was not put to the test")]
    NotTested,
    #[strum(to_string = "the lock kept its promises")]
    Kept,
}
