//! From a YAML file to something that can be run: the mirror of the file
//! (`draft`), one validation pass that collects (`validate`), and the
//! [`timeline`] that says what is due when an event comes.

mod action;
mod build;
mod draft;
mod library;
mod needs;
mod page;
mod plan;
mod promised;
mod schema;
mod settings;
pub mod timeline;
mod validate;
mod values;

#[cfg(test)]
mod tests;

pub use crate::model::Span;
pub use crate::model::trigger::{self, Trigger};
pub use draft::Repeat;
pub use library::{Library, LibraryError, load_file};
pub use needs::Need;
pub use page::page;
pub use plan::plan;
pub use schema::schema;
pub use settings::{Setting, Settings};
pub use validate::{Surroundings, TopologyFacts, WorkerFacts};

use crate::model::{
    Expectations, Fault, Fence, Gate, KeyTemplate, LoadPlan, LockOptions, Name, OnLost,
};
use crate::yaml::{self, InvalidFile};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::time::Duration;

/// Workers that go on for a time go on for so much longer than faults begin, so
/// that every fault finds everybody there.
pub const CALM: Duration = Duration::from_secs(5);

/// A scenario that passed validation.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: Name,
    pub about: String,
    pub cases: Vec<Case>,
    /// The file as it was read, kept with the results.
    pub text: String,
    /// What was laid over every case, this once.
    pub settings: Settings,
}

/// One way to run a scenario, and what has to come of it.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: Name,
    pub fence: Fence,
    pub expect: Expectations,
    pub setup: Setup,
}

/// What a case starts, and what happens to it.
#[derive(Clone, Debug)]
pub struct Setup {
    pub topology: String,
    /// What workers are started from, instead of this program: a folder with a
    /// Dockerfile, or an image.
    pub worker_image: Option<String>,
    /// How long workers without a number of rounds go on.
    pub duration: Option<Duration>,
    /// A case that is not over by then is given up, naming what did not come.
    pub deadline: Duration,
    /// What workers use that have no lock of their own.
    pub lock: LockOptions,
    /// A load instead of workers and a timeline.
    pub load: Option<LoadPlan>,
    pub workers: Vec<Worker>,
    pub timeline: Vec<Entry>,
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub name: Name,
    pub key: String,
    pub lock: LockOptions,
    /// Where its lock lies at the server, if another library makes it.
    pub lock_key: Option<KeyTemplate>,
    pub ttl: Duration,
    pub gates: Vec<Gate>,
    /// Without one it starts as soon as everybody is ready.
    pub start: Option<Trigger>,
    /// Without a number it goes on for the setup's duration.
    pub rounds: Option<u32>,
    pub work: Duration,
    /// A stop-the-world pause inside the worker, between its work and its write.
    pub pause: Duration,
    pub on_lost: OnLost,
    /// Renew the lease at a third of its TTL.
    pub renew: bool,
    /// How many holds of the one lock it has inside of each other.
    pub nested: u32,
    /// Reads what it is about to replace.
    pub reads: bool,
}

/// One entry of the timeline: armed from the start, fires once.
#[derive(Clone, Debug)]
pub struct Entry {
    /// For triggers on it (`cut.began`, `cut.ended`) and for `heal: cut`.
    pub name: Option<String>,
    pub when: Trigger,
    pub after: Span,
    /// How often its steps are taken, one time after the other.
    pub repeat: Repeat,
    pub steps: Vec<Step>,
}

/// One step of an entry; the next one comes when it is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Inject {
        /// One of them, drawn by the seed.
        choices: Vec<Fault>,
        /// Undone after this long, and only then over. Without it the step is
        /// over as soon as the fault is proven, and the fault stands until
        /// something undoes it.
        lasting: Option<Span>,
    },
    Resume {
        node: Name,
    },
    Thaw {
        node: Name,
    },
    /// Undoes everything that the entry of this name has brought about.
    Heal {
        entry: String,
    },
    Wait {
        span: Span,
    },
    /// Until an event has come.
    Await {
        event: Trigger,
    },
    /// Begun at the same time, over when all are.
    Together {
        steps: Vec<Step>,
    },
}

impl Scenario {
    /// Reads and validates one file; every complaint comes at once.
    pub fn parse(
        file: &Path,
        text: &str,
        settings: &Settings,
        surroundings: &Surroundings,
    ) -> Result<Scenario, InvalidFile> {
        let root = yaml::parse(file, text)?;
        let mut report = yaml::Report::new(file);
        settings.announce(&mut report);
        let draft = draft::read(&root, &settings.tree(), &mut report);
        let parsed = draft.and_then(|draft| {
            let cases = validate::validate(&draft, file, surroundings, &mut report);
            Some(Scenario {
                name: Name::new(draft.name?.value).ok()?,
                about: draft.about?.value.trim().to_owned(),
                cases: cases?,
                text: text.to_owned(),
                settings: settings.clone(),
            })
        });
        report.finish(parsed)
    }

    /// Whether it is of `kind: load`.
    pub fn is_load(&self) -> bool {
        self.cases.iter().any(|case| case.setup.load.is_some())
    }

    /// Changes when the file changes, comments included.
    pub fn hash(&self) -> String {
        format!("sha256:{:x}", Sha256::digest(self.text.as_bytes()))
    }
}

impl Setup {
    /// Every fault that may be injected, whatever the seed draws.
    pub fn faults(&self) -> Vec<&Fault> {
        let steps = self.timeline.iter().flat_map(|entry| &entry.steps);
        steps.flat_map(Step::faults).collect()
    }

    /// Whether anybody writes to the resource: without that, a fence has nothing to say.
    pub fn writes(&self) -> bool {
        !matches!(self.load, Some(LoadPlan::Keyspace(_)))
    }
}

impl Step {
    fn faults(&self) -> Vec<&Fault> {
        match self {
            Step::Inject { choices, .. } => choices.iter().collect(),
            Step::Together { steps } => steps.iter().flat_map(Step::faults).collect(),
            _ => Vec::new(),
        }
    }
}
