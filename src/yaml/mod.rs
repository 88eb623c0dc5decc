//! YAML that remembers where everything stood.
//!
//! Scenarios and compose files are written by hand, so every complaint about
//! them names file, line and column, and all complaints come at once. That
//! needs a tree with positions; the serde way stops at the first error.

mod fields;
mod nearest;
mod overlay;
mod parse;
mod report;

pub use fields::Fields;
pub use nearest::suggestion;
pub use overlay::overlay;
pub use parse::parse;
pub use report::{Complaint, InvalidFile, Report};

/// Line and column, both counted from one, as editors do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

impl Place {
    /// Of something that was laid over the file from outside: the `nth` part of
    /// the thing with this number, counted from one. See [`Report::name_outside`].
    fn outside(number: usize, nth: usize) -> Place {
        Place {
            line: 0,
            column: number * PARTS + nth,
        }
    }

    /// The number of what was laid over the file, where it is not in the file.
    fn number_outside(self) -> Option<usize> {
        (self.line == 0).then_some(self.column / PARTS)
    }
}

/// More parts than anybody lays over a file in one thing.
const PARTS: usize = 1 << 20;

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

    /// Gives it and everything in it a place outside of the file, each part its
    /// own.
    pub fn move_outside(&mut self, number: usize) {
        self.move_parts(number, &mut 0);
    }

    fn move_parts(&mut self, number: usize, nth: &mut usize) {
        self.place = next_outside(number, nth);
        match &mut self.value {
            Value::Scalar(_) => {}
            Value::List(items) => {
                for item in items {
                    item.move_parts(number, nth);
                }
            }
            Value::Map(entries) => {
                for (key, node) in entries {
                    key.place = next_outside(number, nth);
                    node.move_parts(number, nth);
                }
            }
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

fn next_outside(number: usize, nth: &mut usize) -> Place {
    *nth += 1;
    Place::outside(number, *nth)
}
