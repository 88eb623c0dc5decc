use super::{Place, suggestion};
use std::fmt;
use std::path::Path;

/// Collects complaints about one file, so that all can be said at once.
#[derive(Debug)]
pub struct Report {
    file: String,
    /// What was laid over the file from outside.
    outside: Vec<String>,
    complaints: Vec<(Place, String)>,
}

/// A file with something wrong in it: one line per complaint, each with its place.
#[derive(Debug, thiserror::Error)]
pub struct InvalidFile {
    pub lines: Vec<String>,
}

impl Report {
    pub fn new(file: &Path) -> Report {
        Report {
            file: file.display().to_string(),
            outside: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// How complaints call what was moved outside (see [`Node::move_outside`]).
    ///
    /// [`Node::move_outside`]: super::Node::move_outside
    pub fn name_outside(&mut self, names: Vec<String>) {
        self.outside = names;
    }

    pub fn add(&mut self, place: Place, message: impl Into<String>) {
        self.complaints.push((place, message.into()));
    }

    /// A name that is not one of `known`, with the nearest right one.
    pub fn unknown<'a>(
        &mut self,
        place: Place,
        what: &str,
        got: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        let known: Vec<&str> = known.into_iter().collect();
        let hint = suggestion(got, &known);
        self.add(place, format!("unknown {what} `{got}`; {hint}"));
    }

    /// How many complaints there are so far; more after a read mean that not
    /// everything of it could be read.
    pub fn complaints(&self) -> usize {
        self.complaints.len()
    }

    /// `value` where nothing was wrong, else everything that was, in file order.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, InvalidFile> {
        if let (Some(value), true) = (value, self.complaints.is_empty()) {
            return Ok(value);
        }
        // What several cases share is read once for each of them.
        self.complaints.sort();
        self.complaints.dedup();
        let lines = self
            .complaints
            .iter()
            .map(|(place, message)| format!("{}: {message}", self.words(*place)))
            .collect();
        Err(InvalidFile { lines })
    }

    fn words(&self, place: Place) -> String {
        let Place { line, column } = place;
        let number = place
            .number_outside()
            .and_then(|number| number.checked_sub(1));
        match number.and_then(|number| self.outside.get(number)) {
            Some(name) => format!("{}: {name}", self.file),
            None => format!("{}:{line}:{column}", self.file),
        }
    }
}

impl fmt::Display for InvalidFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}
