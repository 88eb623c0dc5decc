//! A scenario that is written from options. An error in one of its lines is reported as an
//! error of the option that the line came from, so that both follow the same rules.

use super::*;
use crate::scenario::{Scenario, Settings, Surroundings};
use crate::yaml::Complaint;

pub struct WrittenScenario {
    name: &'static str,
    lines: Vec<(String, Option<&'static str>)>,
}

impl WrittenScenario {
    pub fn new(name: &'static str, about: &str) -> WrittenScenario {
        let typed = joined(std::env::args().skip(1).map(as_typed), " ");
        let mut written = WrittenScenario {
            name,
            lines: Vec::new(),
        };
        written.line(format!("# Written by: fencepost {typed}"));
        written.line(format!("name: {name}"));
        written.line(format!("about: {}", scalar(about)));
        written.line("kind: load");
        written
    }

    pub fn line(&mut self, text: impl Into<String>) {
        self.lines.push((text.into(), None));
    }

    /// Adds a line that comes from an option.
    pub fn from(&mut self, option: &'static str, text: impl Into<String>) {
        self.lines.push((text.into(), Some(option)));
    }

    /// Adds a field with one value that comes from an option, if it was given.
    pub fn field<'a>(
        &mut self,
        option: &'static str,
        field: &str,
        value: impl Into<Option<&'a String>>,
    ) {
        if let Some(value) = value.into() {
            self.from(option, format!("{field}: {}", scalar(value)));
        }
    }

    /// Returns the scenario, or all errors in the options.
    pub fn scenario(&self) -> Result<Scenario, Vec<String>> {
        let text = joined(self.lines.iter().map(|(text, _)| text), "\n") + "\n";
        let file = format!("{}.yml", self.name);
        let around = Surroundings::Recorded;
        let parsed = Scenario::parse(Path::new(&file), &text, &Settings::default(), &around);
        parsed.map_err(|error| {
            let complaints = error.complaints.iter();
            complaints.map(|one| self.about_option(one)).collect()
        })
    }

    /// Turns `contend.yml:7:8: …` into `--ttl: …`.
    fn about_option(&self, complaint: &Complaint) -> String {
        let option = || {
            let (_, option) = self.lines.get(complaint.line?.checked_sub(1)?)?;
            Some(format!("{}: {}", (*option)?, complaint.message))
        };
        option().unwrap_or_else(|| complaint.to_string())
    }
}

/// Returns an argument for a comment: quoted if it could leave its line.
fn as_typed(word: String) -> String {
    if word.chars().all(|c| c.is_ascii_graphic()) {
        word
    } else {
        format!("{word:?}")
    }
}

/// Returns a text as a YAML value, unquoted if that is safe.
pub fn scalar(text: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    let starts_well = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts_well && text.chars().all(is_bare) {
        return text.to_owned();
    }
    // A JSON string is also a YAML string.
    serde_json::Value::from(text).to_string()
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
