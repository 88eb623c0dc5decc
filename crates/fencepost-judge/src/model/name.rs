use serde::{Deserialize, Serialize};
use std::borrow::Borrow;
use std::fmt;
use std::ops::Deref;
use std::path::Path;
use uuid::Uuid;

/// What a node, a run, a scenario, a case or a worker is called. A name is a
/// container, a host, a folder and a part of an address at once, so it cannot
/// hold anything that means more than itself in one of them: no separator, no
/// dot, no control character.
///
/// Text from outside becomes a name here, once; whoever takes a `Name` need not
/// look again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The limit of a container, a host and a folder, less the prefixes that we put before a
/// name.
const LONGEST: usize = 50;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name; use 1 to {LONGEST} lower-case letters, digits and dashes, no dash first or last"
)]
pub struct NotAName(String);

impl Name {
    pub fn new(text: impl Into<String>) -> Result<Name, NotAName> {
        let text = text.into();
        let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = (1..=LONGEST).contains(&text.len())
            && text.chars().all(is_allowed)
            && !text.starts_with('-')
            && !text.ends_with('-');
        match is_name {
            true => Ok(Name(text)),
            false => Err(NotAName(text)),
        }
    }

    /// Returns this name with one of our words as its prefix, for something that belongs
    /// to it.
    pub fn behind(&self, word: &'static str) -> Name {
        Name(format!("{word}-{self}"))
    }

    /// Makes a unique name from a random id.
    pub fn of_id(id: Uuid) -> Name {
        Name(id.simple().to_string()[..10].to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl AsRef<Path> for Name {
    fn as_ref(&self) -> &Path {
        self.0.as_ref()
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

macro_rules! compared_with {
    ($($text:ty),*) => {$(
        impl PartialEq<$text> for Name {
            fn eq(&self, other: &$text) -> bool {
                self.0.as_str() == AsRef::<str>::as_ref(other)
            }
        }

        impl PartialEq<Name> for $text {
            fn eq(&self, other: &Name) -> bool {
                other == self
            }
        }
    )*};
}

compared_with!(str, &str, String);

/// Tests write only valid names.
#[cfg(any(test, feature = "testing"))]
impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text).unwrap()
    }
}

impl TryFrom<String> for Name {
    type Error = NotAName;

    fn try_from(text: String) -> Result<Name, NotAName> {
        Name::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_more_than_itself_is_no_name() {
        let not_names = [
            "", ".", "..", "../x", "/x", "a/b", "a\\b", "a\0b", "a\nb", "a\u{1b}b", "a b", "A",
            "ä", "-a", "a-", "a.b", "a:b", "a%2fb", "a?b", "a_b",
        ];
        for text in not_names {
            assert!(Name::new(text).is_err(), "{text:?}");
            let json = serde_json::to_string(text).unwrap();
            assert!(serde_json::from_str::<Name>(&json).is_err(), "{text:?}");
        }
        assert!(Name::new("a".repeat(LONGEST + 1)).is_err());
        for text in ["a", "7", "redis-1", "pause-gt-ttl"] {
            assert_eq!(Name::new(text).unwrap(), text);
        }
    }

    #[test]
    fn a_refusal_shows_what_was_written_without_acting_on_it() {
        let told = Name::new("\u{1b}[31mred").unwrap_err().to_string();
        assert!(!told.contains('\u{1b}') && told.contains("red"), "{told}");
    }
}
