//! From a YAML file to something that can be run: the mirror of the file (`draft`), one validation
//! pass that collects all complaints (`validate`), and the [`timeline`] that says what is due when
//! an event comes.

mod action;
mod build;
mod draft;
mod fields;
mod form;
mod library;
mod page;
mod plan;
mod promised;
mod schema;
mod settings;
mod step;
pub mod timeline;
mod validate;

#[cfg(test)]
mod tests;

pub use crate::model::Span;
pub use crate::model::trigger::{self, Trigger};
pub use draft::{Repeat, WorkerFields};
pub use library::{Library, LibraryError, load_file};
pub use page::page;
pub use plan::plan;
pub use schema::schema;
pub use settings::{Setting, Settings};
pub use step::{DrawnStep, End, PlannedStep, Step};
pub use validate::{Surroundings, TopologyFacts, WorkerFacts};

use crate::faults;
use crate::load::LoadPlan;
use crate::model::{
    Attach, Expectations, Fault, FaultKind, Fence, Gate, Name, ResourceKind, ServiceRun,
};
use crate::services::{Backend, KeyTemplate, LockOptions};
use crate::yaml::{self, At, InvalidFile, Node, Report, values};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The time for which workers with a duration go on after the last fault can begin, so that every
/// fault finds all of them there.
pub const CALM: Duration = Duration::from_secs(5);

/// A scenario that passed validation.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub name: Name,
    pub about: String,
    pub cases: Vec<Case>,
    /// The file as it was read, kept with the results.
    pub text: String,
    /// The overrides of every case, for this run only.
    pub settings: Settings,
}

/// One variant of a scenario, and what is expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: Name,
    /// The service that it runs on, if the scenario compares services.
    pub service: Option<Name>,
    pub fence: Fence,
    pub expect: Expectations,
    pub setup: Setup,
}

/// Everything that a case starts, and what happens to it.
#[derive(Clone, Debug)]
pub struct Setup {
    /// With `attach`, the topology whose workers and resource are used.
    pub topology: String,
    /// Servers that are there already, in the place of the topology's.
    pub attach: Option<Attach>,
    /// The resource in place of the topology's own.
    pub resource: Option<ResourceKind>,
    pub worker: OwnWorker,
    /// The time for which workers without a number of rounds go on.
    pub duration: Option<Duration>,
    /// The time after which a case is given up, with the names of the events that did not come.
    pub deadline: Duration,
    /// The lock of workers that have none of their own.
    pub lock: LockOptions,
    pub ttl: Duration,
    pub load: Option<LoadPlan>,
    pub workers: Vec<Worker>,
    pub timeline: Vec<Entry>,
}

/// What workers are started from and with, as far as it is not this program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnWorker {
    /// A folder with a Dockerfile, or an image. A folder that is not of the home is a whole path.
    pub image: Option<String>,
    /// The command in place of the image's own; without an image, one of this machine.
    pub command: Vec<String>,
    pub env: BTreeMap<String, String>,
}

impl OwnWorker {
    /// Returns whether the workers are this program after all.
    pub fn is_ours(&self) -> bool {
        self.image.is_none() && self.command.is_empty()
    }
}

#[derive(Clone, Debug)]
pub struct Worker {
    pub name: Name,
    pub key: String,
    pub lock: LockOptions,
    /// The key of its lock at the server, if another library makes the lock.
    pub lock_key: Option<KeyTemplate>,
    pub ttl: Duration,
    pub gates: Vec<Gate>,
    /// The event that starts it; without one it starts as soon as all workers are ready.
    pub start: Option<Trigger>,
    /// The number of rounds; without one it goes on for the setup's duration.
    pub rounds: Option<u32>,
    /// The fields as the file has them; those above have their final values.
    pub fields: WorkerFields,
}

/// One entry of the timeline: armed from the start, fires once.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name for triggers on it (`cut.began`, `cut.ended`) and for `heal: cut`.
    pub name: Option<String>,
    pub when: Trigger,
    pub after: Span,
    /// The number of times that its steps are taken, one time after the other.
    pub repeat: Repeat,
    pub steps: Vec<PlannedStep>,
}

/// Returns the values without repeats, in the order in which they come.
pub fn once_each<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut kept = Vec::new();
    for one in all {
        if !kept.contains(&one) {
            kept.push(one);
        }
    }
    kept
}

impl Scenario {
    /// Reads and validates one file; reports all complaints at once.
    pub fn parse(
        file: &Path,
        text: &str,
        settings: &Settings,
        surroundings: &Surroundings,
    ) -> Result<Scenario, InvalidFile> {
        let root = yaml::parse(file, text)?;
        let scenario = Scenario::of_tree(file, &root, settings, surroundings)?;
        Ok(Scenario {
            text: text.to_owned(),
            ..scenario
        })
    }

    /// Validates a file as it was read, or made; it has no text then.
    pub fn of_tree(
        file: &Path,
        root: &Node,
        settings: &Settings,
        surroundings: &Surroundings,
    ) -> Result<Scenario, InvalidFile> {
        let mut report = yaml::Report::new(file);
        settings.announce(&mut report);
        let draft = draft::read(root, &settings.tree(), &mut report);
        let parsed = draft.and_then(|draft| {
            let cases = validate::validate(&draft, file, surroundings, &mut report);
            Some(Scenario {
                name: Name::new(draft.name?.value).ok()?,
                about: draft.about?.value.trim().to_owned(),
                cases: cases?,
                text: String::new(),
                settings: settings.clone(),
            })
        });
        report.finish(parsed)
    }

    /// Returns the services that it compares, in the order of the file.
    pub fn services(&self) -> Vec<&Name> {
        once_each(self.cases.iter().filter_map(|case| case.service.as_ref()))
    }

    pub fn is_load(&self) -> bool {
        self.cases.iter().any(|case| case.setup.load.is_some())
    }

    /// Returns whether none of it can be played on real servers.
    pub fn is_only_simulated(&self) -> bool {
        let mut cases = self.cases.iter();
        cases.all(|case| case.setup.only_simulated().is_some())
    }

    /// Returns a hash that changes when the file changes, comments included.
    pub fn hash(&self) -> String {
        format!("sha256:{:x}", Sha256::digest(self.text.as_bytes()))
    }
}

impl Case {
    /// Returns whether this is its name, or that of its service.
    pub fn is_called(&self, name: &str) -> bool {
        self.name == *name
            || self
                .service
                .as_ref()
                .is_some_and(|service| *service == *name)
    }

    /// Returns what a comparison of services says of it.
    pub fn service_run(&self) -> Option<ServiceRun> {
        let lock = self.setup.lock.backend.service();
        Some(ServiceRun {
            name: self.service.clone()?,
            tokens: lock.tokens.to_owned(),
            ttl_ms: u64::try_from(self.setup.ttl.as_millis()).unwrap_or(u64::MAX),
        })
    }
}

impl Setup {
    /// Returns whether its workers are a load of their own: they go on for a time, and nothing
    /// happens to them.
    pub fn measures_workers(&self) -> bool {
        self.load.is_none() && self.duration.is_some() && self.timeline.is_empty()
    }

    /// Returns a lock service of it that exists in the simulation only.
    pub fn only_simulated(&self) -> Option<Backend> {
        let of_workers = self.workers.iter().map(|worker| worker.lock.backend);
        let mut all = of_workers.chain([self.lock.backend]);
        all.find(|backend| backend.servers().program.is_only_simulated())
    }

    /// Returns every fault that may be injected, whatever the seed draws.
    pub fn faults(&self) -> Vec<&Fault> {
        let steps = self.timeline.iter().flat_map(|entry| &entry.steps);
        steps.flat_map(Step::faults).flatten().collect()
    }

    /// Returns what its faults need of the machine beside an engine.
    pub fn needs(&self) -> Vec<&'static str> {
        faults::of_the_machine(self.faults().into_iter())
    }

    /// Returns whether anybody writes to the resource: without writes a fence decides nothing.
    pub fn writes(&self) -> bool {
        !matches!(self.load, Some(LoadPlan::Keyspace(_)))
    }
}
