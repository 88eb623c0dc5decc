use crate::model::Gap;
use std::fmt;

/// Why a fault is not proven, or could not be undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotProven {
    /// The id of its rows; None where it never came to a row.
    pub fault: Option<u32>,
    pub text: String,
}

impl fmt::Display for NotProven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// A fault that never came to a row.
impl From<String> for NotProven {
    fn from(text: String) -> NotProven {
        NotProven { fault: None, text }
    }
}

impl From<NotProven> for Gap {
    fn from(NotProven { fault, text }: NotProven) -> Gap {
        Gap { fault, text }
    }
}
