//! One pass over a draft that collects everything that cannot work, before anything is started.

pub mod attach;
mod entries;
mod events;
mod image;
mod links;
mod load;
mod lock;
mod names;
mod nodes;
mod pauses;
mod reachable;
mod stopped;
mod surroundings;
mod times;
mod triggers;
mod workers;

pub use image::found_from;
pub use load::{contend_plan, keyspace_plan};
pub use surroundings::{Surroundings, TopologyFacts, WorkerFacts};
pub use times::deadline;

use super::draft::{Draft, DraftCase, DraftSetup};
use super::{Case, build};
use crate::builtin::Location;
use crate::faults::Role;
use crate::model::{EventKind, FaultClass, FaultKind, LEADER};
use crate::scenario::draft::{DraftEntry, DraftFault, DraftStep, DraftWorker};
use crate::scenario::step::Step;
use crate::scenario::trigger::{RESOURCE, SCENARIO};
use crate::scenario::{Span, Trigger, once_each};
use crate::yaml::{At, Place, Report};
use std::path::Path;
use std::time::Duration;

/// Each worker is a container of its own.
const MOST_WORKERS: usize = 64;

/// Returns the cases if all of them passed; None if any did not, which has been reported.
pub fn validate(
    draft: &Draft,
    file: &Path,
    surroundings: &Surroundings,
    report: &mut Report,
) -> Option<Vec<Case>> {
    names::of_scenario(draft, file, surroundings, report);
    let cases = draft.cases.iter();
    let cases: Vec<Option<Case>> = cases
        .map(|case| validate_case(case, file, surroundings, report))
        .collect();
    cases.into_iter().collect()
}

fn validate_case(
    case: &DraftCase,
    file: &Path,
    surroundings: &Surroundings,
    report: &mut Report,
) -> Option<Case> {
    let draft = &case.setup;
    if let Some(worker) = draft.workers.get(MOST_WORKERS) {
        let message = format!("a scenario has at most {MOST_WORKERS} workers");
        report.add(worker.name.place, message);
        return None;
    }
    let facts = match (surroundings, &draft.topology) {
        (Surroundings::Here { topologies, .. }, Some(topology)) => topologies.get(&topology.value),
        _ => None,
    };
    let backend = draft.lock.as_ref().and_then(|lock| lock.backend.as_ref());
    let attached = match (facts, &draft.attach, backend) {
        (Some(base), Some(attach), Some(backend)) => {
            Some(attach::facts(attach, backend.value, base))
        }
        _ => None,
    };
    let check = Check {
        draft,
        facts: attached.as_ref().or(facts),
        deadline: deadline(draft),
    };
    attach::check(draft, facts, report);
    names::check(&check, surroundings, report);
    image::check(draft, file, surroundings, report);
    times::check(&check, report);
    lock::check(&check, report);
    load::check(draft, report);
    workers::check(&check, report);
    entries::check(&check, report);
    if let Some(expected) = &case.expect {
        triggers::check_order(&check, expected, report);
    }
    let wrong = triggers::check(&check, report);
    reachable::check(&check, &wrong, report);
    build::case(case, file)
}

pub struct Check<'a> {
    draft: &'a DraftSetup,
    /// None if the topology is not known: then its services cannot be checked.
    facts: Option<&'a TopologyFacts>,
    deadline: Duration,
}
