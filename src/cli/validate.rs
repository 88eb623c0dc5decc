use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::home::Home;
use super::output;
use crate::cluster::Topology;
use crate::files::{self, Links};
use crate::scenario::{Settings, Surroundings, load_file};
use crate::yaml::{self, Node};
use clap::Args;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Validate {
    /// Scenario or compose files [default: every scenario, every topology and the proxies]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}

impl Validate {
    /// Says everything about every file before it fails.
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let around = home.surroundings()?;
        let files = match self.files.is_empty() {
            false => self.files,
            true => {
                home.toxiproxy()?;
                let library = home.library();
                let names = library.names()?;
                let files = names.iter().map(|name| library.file(name));
                files.collect::<Result<_, _>>()?
            }
        };
        let checked: Vec<_> = files
            .iter()
            .map(|file| (file, check(file, &around)))
            .collect();
        match self.printed.is_json() {
            true => document(&told(&checked))?,
            false => print(&checked)?,
        }
        Ok(match checked.iter().all(|(_, checked)| checked.is_ok()) {
            true => Exit::AsExpected,
            false => Exit::Usage,
        })
    }
}

/// What a file is, where it is right.
type Checked<'a> = (&'a PathBuf, Result<&'static str, Failure>);

fn print(checked: &[Checked<'_>]) -> Result<(), Failure> {
    for (file, checked) in checked {
        match checked {
            Ok(what) => output::line(format_args!("{}: ok (a {what})", file.display()))?,
            Err(failure) => output::complain(failure),
        }
    }
    Ok(())
}

fn told(checked: &[Checked<'_>]) -> Value {
    let files = checked.iter().map(|(file, checked)| match checked {
        Ok(what) => json!({ "file": file, "is": what }),
        Err(failure) => {
            let mut told = failure.document();
            told["file"] = json!(file);
            told
        }
    });
    json!({ "files": files.collect::<Vec<Value>>() })
}

fn check(file: &Path, around: &Surroundings) -> Result<&'static str, Failure> {
    if is_topology(file) {
        Topology::load(file)?;
        return Ok("topology");
    }
    load_file(file, &Settings::default(), around)?;
    Ok("scenario")
}

/// Compose files have `services`, and scenarios do not.
fn is_topology(file: &Path) -> bool {
    let has_services = |node: &Node| matches!(&node.value, yaml::Value::Map(entries) if entries.iter().any(|(key, _)| key.value == "services"));
    let text = files::read_text(file, Links::Follow, files::BY_HAND).unwrap_or_default();
    yaml::parse(file, &text).is_ok_and(|node| has_services(&node))
}
