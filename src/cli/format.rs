//! How a command prints its result.

use super::exit::Failure;
use super::output;
use crate::report::shown;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Human,
    Json,
    Markdown,
}

/// For commands that have nothing to say to a page.
#[derive(Args)]
pub struct Printed {
    /// For people, or as one JSON document on stdout
    #[arg(long, value_name = "FORMAT", default_value = "human", value_parser = human_or_json())]
    format: Format,
}

impl Printed {
    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

fn human_or_json() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(["human", "json"]).map(|name| match name.as_str() {
        "json" => Format::Json,
        _ => Format::Human,
    })
}

/// The one document of a command.
pub fn document(value: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(Failure::harness)?;
    output::line(shown::json(&text))
}
