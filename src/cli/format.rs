//! The output formats of commands.

use super::*;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::fmt::Display;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Human,
    Json,
    Markdown,
}

/// For commands that have nothing to say to a page.
#[derive(Args)]
pub struct OutputFormat {
    /// Print for people, or one JSON document on stdout
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = human_or_json())]
    format: Format,
}

impl OutputFormat {
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// Prints a result: as a document, or as text for a person.
    pub fn show(&self, result: &impl Serialize, text: impl Display) -> Result<Exit, Failure> {
        if self.is_json() {
            document(result)?;
        } else {
            output::print(text)?;
        }
        Ok(Exit::AsExpected)
    }
}

fn human_or_json() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["human", "json"]).map(|name| match name.as_str() {
        "json" => Format::Json,
        _ => Format::Human,
    })
}

/// Prints the one JSON document of a command.
pub fn document(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::harness)?;
    output::line(shown::json(&text))
}
