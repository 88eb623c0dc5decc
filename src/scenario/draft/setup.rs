use super::{Befalls, DraftAction, DraftEntry, DraftLock, DraftStep, DraftWorker};
use super::{DraftLoad, Kind, entry, kind, lock, read_named, worker};
use crate::scenario::values::duration;
use crate::yaml::{At, Fields, Node, Report};
use std::collections::BTreeMap;
use std::time::Duration;

/// What one case starts and does.
pub struct DraftSetup {
    pub topology: Option<At<String>>,
    /// What every worker is started from, instead of this program.
    pub image: Option<At<String>>,
    pub lock: Option<DraftLock>,
    /// Workers without a number of rounds, and entries that repeat throughout,
    /// go on for this long.
    pub duration: Option<At<Duration>>,
    pub deadline: Option<At<Duration>>,
    pub kind: Kind,
    /// Of a load, where it could be read.
    pub load: Option<DraftLoad>,
    pub workers: Vec<DraftWorker>,
    pub timeline: Vec<DraftEntry>,
}

impl DraftSetup {
    pub fn ttl(&self) -> Option<&At<Duration>> {
        self.lock.as_ref()?.ttl.as_ref()
    }

    /// The TTL of a worker's own lock, or of the scenario's.
    pub fn ttl_of(&self, node: &str) -> Option<Duration> {
        let mut workers = self.workers.iter();
        let worker = workers.find(|worker| worker.name.value == node);
        let own = worker.and_then(|worker| worker.lock.as_ref()?.ttl.as_ref());
        own.or(self.ttl()).map(|at| at.value)
    }

    /// Whether nothing in the timeline is missing here: a step that could not
    /// be read may well be the resume that somebody waits for.
    pub fn timeline_is_whole(&self) -> bool {
        self.timeline.iter().all(|entry| entry.is_whole)
    }
}

pub fn read(node: &Node, report: &mut Report) -> Option<DraftSetup> {
    let mut fields = Fields::of(node, "the scenario", report)?;
    let topology = fields.required("topology", report);
    let lock_node = fields.required("lock", report);
    let kind = kind::read(&mut fields, report);
    // What a load may not have has been refused, and is not looked into.
    let (image, workers, timeline, load) = match kind {
        Kind::Fault => (
            fields.read("worker", report, read_image),
            fields.required("workers", report),
            fields.optional("timeline"),
            None,
        ),
        Kind::Load => (None, None, None, kind::read_load(node, &mut fields, report)),
    };
    let length = fields.read("duration", report, duration);
    let deadline = fields.read("deadline", report, duration);
    let workers = workers.map(|node| {
        let read = |name: &At<String>, node: &Node, report: &mut Report| {
            worker::read(name, node, lock_node, report)
        };
        read_named(node, "the workers by name", read, report)
    });
    let workers = workers.unwrap_or_default();
    let mut timeline = timeline
        .map(|node| entry::read_all(node, report))
        .unwrap_or_default();
    let copies = copies(&workers);
    for entry in &mut timeline {
        spread(&mut entry.steps, &copies);
    }
    Some(DraftSetup {
        topology: topology.and_then(|node| node.text("the name of a topology", report)),
        image,
        lock: lock_node.and_then(|node| lock::read(node, report)),
        duration: length,
        deadline,
        kind,
        load,
        workers: workers.into_iter().flatten().collect(),
        timeline,
    })
}

/// `worker: { image: examples/redis-py-worker }`.
fn read_image(node: &Node, report: &mut Report) -> Option<At<String>> {
    let mut fields = Fields::of(node, "worker", report)?;
    let image = fields.required("image", report);
    fields.finish(report);
    image?.text(
        "a folder with a Dockerfile, or the name of an image",
        report,
    )
}

/// The names that one worker of the file became, where it became several.
fn copies(workers: &[Vec<DraftWorker>]) -> BTreeMap<String, Vec<String>> {
    let several = workers.iter().filter_map(|copies| {
        let original = copies.first()?.copy_of.clone()?;
        let names = copies.iter().map(|copy| copy.name.value.clone());
        Some((original, names.collect()))
    });
    several.collect()
}

/// A worker with copies is one of them to a fault of a node, and all of them to
/// a group.
fn spread(steps: &mut [DraftStep], copies: &BTreeMap<String, Vec<String>>) {
    let spread_names = |names: &mut Vec<At<String>>| {
        let each = names
            .drain(..)
            .flat_map(|name| match copies.get(&name.value) {
                None => vec![name],
                Some(copies) => {
                    let place = name.place;
                    let copies = copies.iter().cloned();
                    copies.map(|value| At { place, value }).collect()
                }
            });
        *names = each.collect();
    };
    for step in steps {
        match &mut step.action {
            DraftAction::Together(inner) => spread(inner, copies),
            DraftAction::Fault(fault) => match &mut fault.befalls {
                Befalls::Node { choices, .. } => spread_names(choices),
                Befalls::Groups { groups, .. } => groups.iter_mut().for_each(spread_names),
                Befalls::Links { .. } => {}
            },
            _ => {}
        }
    }
}
