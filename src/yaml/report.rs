use super::{Place, suggestion};
use std::fmt;
use std::path::Path;

/// Collects complaints about one file, so that all can be said at once.
#[derive(Debug)]
pub struct Report {
    file: String,
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
            complaints: Vec::new(),
        }
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

    /// `value` where nothing was wrong, else everything that was, in file order.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, InvalidFile> {
        if let (Some(value), true) = (value, self.complaints.is_empty()) {
            return Ok(value);
        }
        self.complaints.sort_by_key(|(place, _)| *place);
        let lines = self
            .complaints
            .iter()
            .map(|(place, message)| {
                format!("{}:{}:{}: {message}", self.file, place.line, place.column)
            })
            .collect();
        Err(InvalidFile { lines })
    }
}

impl fmt::Display for InvalidFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}
