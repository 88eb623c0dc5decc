use super::exit::{Exit, Failure};
use super::home::Home;
use crate::scenario::load_file;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct Validate {
    /// Scenario files [default: every scenario and every topology]
    files: Vec<PathBuf>,
}

impl Validate {
    /// Says everything about every file before it fails.
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let around = home.surroundings()?;
        let files = match self.files.is_empty() {
            false => self.files,
            true => {
                let library = home.library();
                let names = library.names()?;
                let files = names.iter().map(|name| library.file(name));
                files.collect::<Result<_, _>>()?
            }
        };
        let mut exit = Exit::AsExpected;
        for file in &files {
            match load_file(file, &around) {
                Ok(scenario) => println!("{}: ok ({})", file.display(), scenario.name),
                Err(error) => {
                    eprintln!("{error}");
                    exit = Exit::Usage;
                }
            }
        }
        Ok(exit)
    }
}
