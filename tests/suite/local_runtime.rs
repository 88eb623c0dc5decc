//! The same scenarios on processes of this machine.

mod bad_input;
mod confined;
mod databases;
mod endings;
mod restarts;

use crate::support::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A scenario of a test's own, on local processes.
struct Tried {
    local: Local,
    home: Home,
    results: PathBuf,
}

impl Tried {
    /// `body` is everything from `topology` on.
    fn new(name: &str, body: &str) -> Tried {
        Tried::with(name, body, local())
    }

    fn with(name: &str, body: &str, local: Local) -> Tried {
        let home = Home::new();
        let head = "name: tried\nabout: A test.\n";
        home.write("scenarios/tried.yml", format!("{head}{body}"));
        let results = fresh_folder(&format!("local-{name}"));
        Tried {
            local,
            home,
            results,
        }
    }

    fn run(&self) -> Ended {
        start(self.command()).wait()
    }

    fn command(&self) -> Command {
        let results = self.results.to_str().expect("a plain path");
        let run = ["run", "tried", "--runtime", "local", "--results", results];
        let home = ["--home", self.home.path()];
        self.local.command([&run[..], &home].concat())
    }

    fn case(&self, name: &str) -> PathBuf {
        self.results.join("tried/latest").join(name)
    }
}

/// Several scenarios, also on a busy machine.
const FIVE_MINUTES: Duration = Duration::from_secs(300);

/// The part of a result that is the same in every good run.
#[track_caller]
fn stable(results: &Path, scenario: &str) -> serde_json::Value {
    let result = json(&results.join(scenario).join("latest/result.json"));
    result["stable"].clone()
}
