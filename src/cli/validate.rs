use super::exit::{Exit, Failure};
use super::home::Home;
use super::output;
use crate::cluster::Topology;
use crate::scenario::{Settings, Surroundings, load_file};
use crate::yaml::{self, Node, Value};
use clap::Args;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Validate {
    /// Scenario or compose files [default: every scenario, every topology and the proxies]
    files: Vec<PathBuf>,
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
        let mut exit = Exit::AsExpected;
        for file in &files {
            match check(file, &around) {
                Ok(what) => output::line(format_args!("{}: ok ({what})", file.display()))?,
                Err(error) => {
                    output::complain(&error);
                    exit = Exit::Usage;
                }
            }
        }
        Ok(exit)
    }
}

/// Names what the file is, where it is right.
fn check(file: &Path, around: &Surroundings) -> Result<&'static str, Failure> {
    if is_topology(file) {
        Topology::load(file)?;
        return Ok("a topology");
    }
    load_file(file, &Settings::default(), around)?;
    Ok("a scenario")
}

/// Compose files have `services`, and scenarios do not.
fn is_topology(file: &Path) -> bool {
    let has_services = |node: &Node| matches!(&node.value, Value::Map(entries) if entries.iter().any(|(key, _)| key.value == "services"));
    let text = std::fs::read_to_string(file).unwrap_or_default();
    yaml::parse(file, &text).is_ok_and(|node| has_services(&node))
}
