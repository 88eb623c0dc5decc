use super::{Place, suggestion};
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// The number of complaints for which the nearest right name is looked for.
const MOST_HINTS: usize = 200;

/// Collects complaints about one file, so that all are reported at once.
#[derive(Debug)]
pub struct Report {
    file: String,
    /// The names of the overrides that were laid over the file.
    outside: Vec<String>,
    complaints: Vec<(Place, String)>,
}

#[derive(Debug, thiserror::Error)]
pub struct InvalidFile {
    pub complaints: Vec<Complaint>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Complaint {
    pub file: String,
    /// Line and column are absent for an override, which is not in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
    pub message: String,
}

impl InvalidFile {
    pub fn lines(&self) -> Vec<String> {
        self.complaints.iter().map(Complaint::to_string).collect()
    }
}

impl Report {
    pub fn new(file: &Path) -> Report {
        Report {
            file: file.display().to_string(),
            outside: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// Sets the names that complaints use for overrides (see [`Node::move_outside`]).
    ///
    /// [`Node::move_outside`]: super::Node::move_outside
    pub fn name_outside(&mut self, names: Vec<String>) {
        self.outside = names;
    }

    pub fn add(&mut self, place: Place, message: impl Into<String>) {
        self.complaints.push((place, message.into()));
    }

    /// Complains about a name that is not one of `known`, with the nearest right one.
    pub fn unknown<'a>(
        &mut self,
        place: Place,
        what: &str,
        got: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        let mut message = format!("unknown {what} `{got}`");
        if self.complaints.len() < MOST_HINTS {
            let known: Vec<&str> = known.into_iter().collect();
            message += &format!("; {}", suggestion(got, &known));
        }
        self.add(place, message);
    }

    /// Returns the number of complaints so far; if a read adds to them, not everything of it could
    /// be read.
    pub fn complaints(&self) -> usize {
        self.complaints.len()
    }

    /// Returns `value` if nothing was wrong, else all complaints in file order.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, InvalidFile> {
        if let (Some(value), true) = (value, self.complaints.is_empty()) {
            return Ok(value);
        }
        // The parts that several cases share are read once for each case.
        self.complaints.sort();
        self.complaints.dedup();
        let complaints = self.complaints.iter();
        let complaints = complaints.map(|(place, message)| self.complaint(*place, message));
        Err(InvalidFile {
            complaints: complaints.collect(),
        })
    }

    fn complaint(&self, place: Place, message: &str) -> Complaint {
        let Place { line, column } = place;
        let number = place
            .number_outside()
            .and_then(|number| number.checked_sub(1));
        let outside = number.and_then(|number| self.outside.get(number));
        Complaint {
            file: self.file.clone(),
            line: outside.is_none().then_some(line),
            column: outside.is_none().then_some(column),
            message: match outside {
                Some(name) => format!("{name}: {message}"),
                None => message.to_owned(),
            },
        }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, message) = (&self.file, &self.message);
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, "{file}:{line}:{column}: {message}"),
            _ => write!(f, "{file}: {message}"),
        }
    }
}

impl fmt::Display for InvalidFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}
