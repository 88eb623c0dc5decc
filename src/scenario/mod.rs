//! From a YAML file to something that can be run: the mirror of the file
//! (`draft`), one validation pass that collects (`validate`), and the
//! [`timeline`] that says what is due when an event comes.

mod build;
mod draft;
mod library;
mod lock;
mod pauses;
mod plan;
mod schema;
pub mod timeline;
mod trigger;
mod validate;
mod values;

#[cfg(test)]
mod tests;

pub use library::{Library, LibraryError, load_file};
pub use plan::plan;
pub use schema::schema;
pub use trigger::Trigger;
pub use validate::{Surroundings, TopologyFacts};

use crate::model::{Expectations, Fence, Gate, LockOptions, OnLost};
use crate::yaml::{self, InvalidFile};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;

/// A scenario that passed validation.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: String,
    pub about: String,
    pub topology: String,
    pub lock: LockOptions,
    pub ttl: Duration,
    /// A case that is not over by then is given up, naming what did not come.
    pub deadline: Duration,
    pub workers: Vec<Worker>,
    pub timeline: Vec<Entry>,
    pub cases: Vec<Case>,
    /// The file as it was read, kept with the results.
    pub text: String,
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub name: String,
    pub key: String,
    pub gates: Vec<Gate>,
    /// Without one it starts as soon as everybody is ready.
    pub start: Option<Trigger>,
    pub rounds: u32,
    pub work: Duration,
    /// A stop-the-world pause inside the worker, between its work and its write.
    pub pause: Duration,
    pub on_lost: OnLost,
    /// Renew the lease at a third of its TTL.
    pub renew: bool,
}

/// One line of the timeline: armed from the start, fires once.
#[derive(Clone, Debug)]
pub struct Entry {
    pub when: Trigger,
    pub after: Duration,
    pub action: Action,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    Pause {
        target: String,
        /// Resumed by itself after this long.
        lasting: Option<Duration>,

        longer_than: Option<Duration>,
    },
    Resume {
        target: String,
    },
}

#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub fence: Fence,
    pub expect: Expectations,
}

impl Scenario {
    /// Reads and validates one file; every complaint comes at once.
    pub fn parse(
        file: &Path,
        text: &str,
        surroundings: &Surroundings,
    ) -> Result<Scenario, InvalidFile> {
        let root = yaml::parse(file, text)?;
        let mut report = yaml::Report::new(file);
        let draft = draft::read(&root, &mut report);
        let scenario = draft
            .and_then(|draft| validate::validate(draft, file, text, surroundings, &mut report));
        report.finish(scenario)
    }

    /// Changes when the file changes, comments included.
    pub fn hash(&self) -> String {
        format!("sha256:{:x}", Sha256::digest(self.text.as_bytes()))
    }
}

impl Action {
    pub fn target(&self) -> &str {
        match self {
            Action::Pause { target, .. } | Action::Resume { target } => target,
        }
    }
}
