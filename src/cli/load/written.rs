//! A scenario that is written from options. Whatever the scenario's own rules say
//! about a line of it is said about the option that the line came from, so there is
//! one set of rules for both.

use crate::scenario::{Scenario, Settings, Surroundings};
use crate::yaml::Complaint;
use std::path::Path;

pub struct Written {
    name: &'static str,
    lines: Vec<(String, Option<&'static str>)>,
}

impl Written {
    pub fn new(name: &'static str, about: &str) -> Written {
        let typed: Vec<String> = std::env::args().skip(1).map(as_typed).collect();
        let mut written = Written {
            name,
            lines: Vec::new(),
        };
        written.line(format!("# Written by: fencepost {}", typed.join(" ")));
        written.line(format!("name: {name}"));
        written.line(format!("about: {}", scalar(about)));
        written.line("kind: load");
        written
    }

    pub fn line(&mut self, text: impl Into<String>) {
        self.lines.push((text.into(), None));
    }

    /// A line that says what an option says.
    pub fn from(&mut self, option: &'static str, text: impl Into<String>) {
        self.lines.push((text.into(), Some(option)));
    }

    /// As [`Written::from`], where the option was given.
    pub fn maybe(&mut self, option: &'static str, field: &str, value: Option<&String>) {
        if let Some(value) = value {
            self.from(option, format!("{field}: {}", scalar(value)));
        }
    }

    /// The scenario, or everything that is wrong with the options.
    pub fn scenario(&self) -> Result<Scenario, Vec<String>> {
        let lines: Vec<&str> = self.lines.iter().map(|(text, _)| text.as_str()).collect();
        let text = lines.join("\n") + "\n";
        let file = format!("{}.yml", self.name);
        let around = Surroundings::Recorded;
        let parsed = Scenario::parse(Path::new(&file), &text, &Settings::default(), &around);
        parsed.map_err(|error| {
            let complaints = error.complaints.iter();
            complaints.map(|one| self.about_option(one)).collect()
        })
    }

    /// `contend.yml:7:8: …` → `--ttl: …`.
    fn about_option(&self, complaint: &Complaint) -> String {
        let option = || {
            let (_, option) = self.lines.get(complaint.line?.checked_sub(1)?)?;
            Some(format!("{}: {}", (*option)?, complaint.message))
        };
        option().unwrap_or_else(|| complaint.to_string())
    }
}

/// For a remark: whatever is typed, it stays in its line.
fn as_typed(word: String) -> String {
    match word.chars().all(|c| c.is_ascii_graphic()) {
        true => word,
        false => format!("{word:?}"),
    }
}

/// A text as a value of YAML: bare where that is safe to read.
pub fn scalar(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    match starts_well && text.chars().all(is_bare) {
        true => text.to_owned(),
        // A text of JSON is one of YAML.
        false => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_cannot_break_out_of_their_line() {
        for (text, written) in [
            ("5s", "5s"),
            ("200/s", "200/s"),
            ("5s, x: 1", "\"5s, x: 1\""),
            ("a\nkind: fault", "\"a\\nkind: fault\""),
            ("-1", "\"-1\""),
            ("", "\"\""),
        ] {
            assert_eq!(scalar(text), written);
        }
    }
}
