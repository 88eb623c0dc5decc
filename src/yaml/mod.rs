//! YAML that remembers where everything stood.
//!
//! Scenarios and compose files are written by hand, so every complaint about
//! them names file, line and column, and all complaints come at once. That
//! needs a tree with positions; the serde way stops at the first error.

mod fields;
mod nearest;
mod parse;
mod report;

pub use fields::Fields;
pub use nearest::suggestion;
pub use parse::parse;
pub use report::{InvalidFile, Report};

/// Line and column, both counted from one, as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub place: Place,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Every scalar as its text; what it means is up to the reader of that field.
    Scalar(String),
    List(Vec<Node>),
    Map(Vec<(At<String>, Node)>),
}

/// A value together with the place it was read from.
#[derive(Clone, Debug, PartialEq)]
pub struct At<T> {
    pub place: Place,
    pub value: T,
}

impl<T> At<T> {
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> At<U> {
        At {
            place: self.place,
            value: convert(self.value),
        }
    }
}

impl Node {
    pub fn what(&self) -> &'static str {
        match self.value {
            Value::Scalar(_) => "a single value",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// The text of a scalar; anything else is reported as `expected`.
    pub fn text(&self, expected: &str, report: &mut Report) -> Option<At<String>> {
        match &self.value {
            Value::Scalar(text) => Some(At {
                place: self.place,
                value: text.clone(),
            }),
            _ => {
                report.add(
                    self.place,
                    format!("expected {expected}, found {}", self.what()),
                );
                None
            }
        }
    }

    /// The entries of a list; anything else is reported.
    pub fn list(&self, expected: &str, report: &mut Report) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => {
                report.add(
                    self.place,
                    format!("expected a list of {expected}, found {}", self.what()),
                );
                None
            }
        }
    }

    /// The entries of a mapping; anything else is reported.
    pub fn map(&self, expected: &str, report: &mut Report) -> Option<&[(At<String>, Node)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => {
                report.add(
                    self.place,
                    format!("expected {expected} (a mapping), found {}", self.what()),
                );
                None
            }
        }
    }
}
