use super::own_worker::{self, DraftOwnWorker};
use super::*;
use crate::model::ResourceKind;
use std::collections::BTreeMap;

/// Everything that one case starts and does.
pub struct DraftSetup {
    /// With `attach`, the topology whose workers and resource are used.
    pub topology: Option<At<String>>,
    pub attach: Option<DraftAttach>,
    pub resource: Option<At<ResourceKind>>,
    pub worker: DraftOwnWorker,
    pub lock: Option<DraftLock>,
    /// The time for which workers without a number of rounds, and entries that repeat throughout,
    /// go on.
    pub duration: Option<At<Duration>>,
    pub deadline: Option<At<Duration>>,
    pub kind: Kind,
    /// The load of a load scenario, if it could be read.
    pub load: Option<DraftLoad>,
    pub workers: Vec<DraftWorker>,
    pub timeline: Vec<DraftEntry>,
    /// A step is about servers, and there are none.
    pub lacks_servers: bool,
}

impl DraftSetup {
    pub fn ttl(&self) -> Option<&At<Duration>> {
        self.lock.as_ref()?.ttl.as_ref()
    }

    /// Returns the TTL of a worker's own lock, or of the scenario's.
    pub fn ttl_of(&self, node: &str) -> Option<Duration> {
        let mut workers = self.workers.iter();
        let worker = workers.find(|worker| worker.name.value == node);
        let own = worker.and_then(|worker| worker.lock.as_ref()?.ttl.as_ref());
        own.or(self.ttl()).map(|at| at.value)
    }

    /// Returns whether the whole timeline could be read: a missing step may well be the resume that
    /// another step needs.
    pub fn timeline_is_whole(&self) -> bool {
        self.timeline.iter().all(|entry| entry.is_whole)
    }
}

pub fn read(node: &Node, report: &mut Report) -> Option<DraftSetup> {
    let mut fields = Fields::of(node, "the scenario", report)?;
    let case = CaseFields::take(&mut fields, report);
    let kind = kind::read(&mut fields, report);
    let (topology, attach) = match case.topology {
        Some(DraftTopology::Named(name)) => (Some(name), None),
        Some(DraftTopology::Attached(attach)) => {
            let backend = case.lock.as_ref().and_then(|lock| lock.backend.as_ref());
            let base = backend.map(|backend| backend.value.servers().topology);
            let base = base.map(|base| At::new(attach.place, base.to_owned()));
            (base, Some(attach))
        }
        None => (None, None),
    };
    let mut setup = DraftSetup {
        topology,
        attach,
        resource: case.resource,
        worker: DraftOwnWorker::default(),
        lock: case.lock,
        duration: case.duration,
        deadline: case.deadline,
        kind,
        load: None,
        workers: Vec::new(),
        timeline: Vec::new(),
        lacks_servers: false,
    };
    // The fields that a load may not have have been refused, and are not read.
    match kind {
        Kind::Load => setup.load = kind::read_load(node, &mut fields, report),
        Kind::Fault => {
            let lock = fields.optional("lock");
            let read = |name: &At<String>, node: &Node, report: &mut Report| {
                worker::read(name, node, lock, report)
            };
            let workers = fields.required("workers", report);
            let workers = workers.map(|node| read_named(node, "the workers by name", read, report));
            let workers = workers.unwrap_or_default();
            let timeline = case.timeline.as_ref();
            let timeline = timeline.map(|node| entry::read_all(node, report));
            let worker = case.worker.and_then(|node| own_worker::read(&node, report));
            setup.worker = worker.unwrap_or_default();
            setup.timeline = timeline.unwrap_or_default();
            let copies = copies(&workers);
            let servers = case.servers.as_deref();
            for entry in &mut setup.timeline {
                spread(&mut entry.steps, &copies);
                let is_about_servers = |step: &&DraftStep| is_about_servers(step);
                let about_servers = entry.all_steps().into_iter().find(is_about_servers);
                setup.lacks_servers |= servers == Some(&[]) && about_servers.is_some();
                at_servers(&mut entry.steps, servers.unwrap_or_default());
            }
            setup.workers = workers.into_iter().flatten().collect();
        }
    }
    Some(setup)
}

/// The word for all nodes that `servers` names.
pub const SERVERS: &str = "servers";

fn is_about_servers(step: &DraftStep) -> bool {
    step.fault().is_some_and(|fault| fault.may_affect(SERVERS))
}

/// Replaces a fault of `servers` with one for each of them, all at the same time.
fn at_servers(steps: &mut [DraftStep], servers: &[At<String>]) {
    for step in steps {
        match step {
            Step::Together { steps } => at_servers(steps, servers),
            Step::Inject { fault, lasting } if fault.may_affect(SERVERS) => {
                let each = servers.iter().map(|server| {
                    let mut fault = fault.clone();
                    fault.target = DraftTarget::Node(vec![server.clone()]);
                    let lasting = lasting.clone();
                    Step::Inject { fault, lasting }
                });
                let mut each: Vec<DraftStep> = each.collect();
                match each.len() {
                    // The name is complained about.
                    0 => {}
                    1 => *step = each.remove(0),
                    _ => *step = Step::Together { steps: each },
                }
            }
            _ => {}
        }
    }
}

/// Returns the names of a worker's copies, for each worker of the file that has copies.
fn copies(workers: &[Vec<DraftWorker>]) -> BTreeMap<String, Vec<String>> {
    let several = workers.iter().filter_map(|copies| {
        let original = copies.first()?.copy_of.clone()?;
        let names = copies.iter().map(|copy| copy.name.value.clone());
        Some((original, names.collect()))
    });
    several.collect()
}

/// Replaces a worker that has copies: with the choice of one of them in a fault of a node, and with
/// all of them in a group.
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
        match step {
            Step::Together { steps } => spread(steps, copies),
            Step::Inject { fault, .. } => match &mut fault.target {
                DraftTarget::Node(choices) => spread_names(choices),
                DraftTarget::Groups(groups) => groups.iter_mut().for_each(spread_names),
                DraftTarget::Links(_) => {}
            },
            Step::End(_) | Step::Heal { .. } | Step::Wait { .. } | Step::Await { .. } => {}
        }
    }
}
