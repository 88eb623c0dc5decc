//! YAML that remembers the place of every value.
//!
//! Scenarios and Compose files are written by hand, so every complaint about them names file, line
//! and column, and all complaints come at once. That needs a tree with positions; serde stops at
//! the first error.

mod fields;
mod nearest;
mod overlay;
mod parse;
mod report;
mod tree;
pub mod values;
mod write;

pub use fields::Fields;
pub use nearest::suggestion;
pub use overlay::overlay;
pub use parse::parse;
pub use report::{Complaint, InvalidFile, Report};
pub use tree::{Path, Turn};
pub use write::write;

/// Line and column, both counted from one, as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Place {
    /// Returns the place of something that was laid over the file from outside: the `nth` part of
    /// the override with this number, counted from one. See [`Report::name_outside`].
    fn outside(number: usize, nth: usize) -> Place {
        Place {
            line: 0,
            column: number * PARTS + nth,
        }
    }

    /// Returns whether it is in an override, and not in the file.
    pub fn is_outside(self) -> bool {
        self.number_outside().is_some()
    }

    /// Returns the number of the override, if the place is not in the file.
    fn number_outside(self) -> Option<usize> {
        (self.line == 0).then_some(self.column / PARTS)
    }
}

/// More parts than any override of a file has.
const PARTS: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub place: Place,
    pub value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A scalar as its text; the reader of the field decides what it means.
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
    pub fn new(place: Place, value: T) -> At<T> {
        At { place, value }
    }

    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> At<U> {
        At::new(self.place, convert(self.value))
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

    /// Gives the node and everything in it a place outside of the file, each part its own.
    pub fn move_outside(&mut self, number: usize) {
        let mut nth = 0;
        self.place_anew(&mut || {
            nth += 1;
            Place::outside(number, nth)
        });
    }

    /// Gives a tree that was made places like those of a file with one value in a line: checks tell
    /// values apart by their places.
    pub fn place_in_lines(&mut self) {
        let mut line = 0;
        self.place_anew(&mut || {
            line += 1;
            Place { line, column: 1 }
        });
    }

    fn place_anew(&mut self, next: &mut impl FnMut() -> Place) {
        self.place = next();
        match &mut self.value {
            Value::Scalar(_) => {}
            Value::List(items) => {
                for item in items {
                    item.place_anew(next);
                }
            }
            Value::Map(entries) => {
                for (key, node) in entries {
                    key.place = next();
                    node.place_anew(next);
                }
            }
        }
    }

    /// Returns the text of a scalar; anything else is reported as not `expected`.
    pub fn text(&self, expected: &str, report: &mut Report) -> Option<At<String>> {
        match &self.value {
            Value::Scalar(text) => Some(At::new(self.place, text.clone())),
            _ => self.refuse(expected, report),
        }
    }

    /// Returns the entries of a list, or the node itself.
    pub fn one_or_more(&self) -> &[Node] {
        match &self.value {
            Value::List(items) => items,
            Value::Scalar(_) | Value::Map(_) => std::slice::from_ref(self),
        }
    }

    /// Returns the entries of a list; anything else is reported.
    pub fn list(&self, expected: &str, report: &mut Report) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => self.refuse(&format!("a list of {expected}"), report),
        }
    }

    /// Returns the entries of a mapping; anything else is reported.
    pub fn map(&self, expected: &str, report: &mut Report) -> Option<&[(At<String>, Node)]> {
        match &self.value {
            Value::Map(entries) => Some(entries),
            _ => self.refuse(&format!("{expected} (a mapping)"), report),
        }
    }

    fn refuse<T>(&self, expected: &str, report: &mut Report) -> Option<T> {
        let found = self.what();
        report.add(self.place, format!("expected {expected}, found {found}"));
        None
    }
}
