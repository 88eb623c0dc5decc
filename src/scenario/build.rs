use super::draft::{
    Bound, DraftAttach, DraftCase, DraftEnd, DraftEntry, DraftFault, DraftLoad, DraftLock,
    DraftPlace, DraftSetup, DraftTarget, DraftWorker, Kind,
};
use super::step::Refine;
use super::validate::{contend_plan, deadline, found_from, keyspace_plan};
use super::*;
use crate::faults::Effect;
use crate::model::{AttachedServer, LinkFault, LinkScope, NodeFault, ServerPlace};

/// Builds a case from a draft that passed validation, without its places and with its defaults.
/// Returns None only if something is missing, which has been reported.
pub fn case(draft: &DraftCase, file: &Path) -> Option<Case> {
    Some(Case {
        name: name(&draft.name)?,
        service: match &draft.service {
            Some(service) => Some(name(service)?),
            None => None,
        },
        fence: draft.fence.as_ref()?.value,
        expect: draft.expect.as_ref()?.without_places(),
        setup: setup(&draft.setup, file)?,
    })
}

fn name(draft: &At<String>) -> Option<Name> {
    Name::new(draft.value.as_str()).ok()
}

fn setup(draft: &DraftSetup, file: &Path) -> Option<Setup> {
    let lock = draft.lock.as_ref()?;
    let workers = draft.workers.iter();
    let workers = workers.map(|own| worker(own, lock, draft.duration.is_some()));
    let entries = draft.timeline.iter().map(|own| entry(own, draft));
    Some(Setup {
        lock: lock.options()?,
        ttl: lock.ttl.as_ref()?.value,
        load: load(draft)?,
        topology: draft.topology.as_ref()?.value.clone(),
        attach: match &draft.attach {
            Some(attach) => Some(attached(attach, lock)?),
            None => None,
        },
        resource: draft.resource.as_ref().map(|resource| resource.value),
        worker: OwnWorker {
            image: draft
                .worker
                .image
                .as_ref()
                .map(|image| found_from(image, file)),
            command: draft.worker.command.clone(),
            env: draft.worker.env.clone(),
        },
        duration: draft.duration.as_ref().map(|duration| duration.value),
        deadline: deadline(draft),
        workers: workers.collect::<Option<_>>()?,
        timeline: entries.collect::<Option<_>>()?,
    })
}

fn attached(draft: &DraftAttach, lock: &DraftLock) -> Option<Attach> {
    let guest = lock.backend.as_ref()?.value.servers().program.guest?;
    let servers = draft.servers.iter().map(|(own, server)| {
        let place = match &server.place {
            DraftPlace::Address(place) => place.clone(),
            DraftPlace::Compose {
                project,
                service,
                port,
            } => ServerPlace::Compose {
                project: project.clone(),
                service: service.clone(),
                port: port.unwrap_or(guest.port),
            },
        };
        let server = AttachedServer {
            place,
            login: server.login.as_ref().map(|login| login.value.clone()),
            database: server.database.as_ref().map(|name| name.value.clone()),
        };
        Some((name(own)?, server))
    });
    let names = |all: &[At<String>]| all.iter().map(name).collect::<Option<Vec<Name>>>();
    Some(Attach {
        servers: servers.collect::<Option<_>>()?,
        allow_faults_on: names(&draft.allow_faults_on)?,
        allow_settings_on: names(&draft.allow_settings_on)?,
    })
}

/// Returns `Some(None)` for a case without a load, and None for a load that could not be read,
/// which has been reported.
fn load(draft: &DraftSetup) -> Option<Option<LoadPlan>> {
    if draft.kind == Kind::Fault {
        return Some(None);
    }
    let plan = match draft.load.as_ref()? {
        DraftLoad::Contend(contend) => LoadPlan::Contend(contend_plan(draft, contend)?),
        DraftLoad::Keyspace(keyspace) => LoadPlan::Keyspace(keyspace_plan(draft, keyspace)?),
    };
    Some(Some(plan))
}

fn worker(draft: &DraftWorker, scenario_lock: &DraftLock, goes_on: bool) -> Option<Worker> {
    let lock = draft.lock.as_ref().unwrap_or(scenario_lock);
    let gates = draft.gate.iter().flatten();
    let rounds = draft.rounds.as_ref().map(|rounds| rounds.value);
    Some(Worker {
        name: name(&draft.name)?,
        key: draft.key.as_ref()?.value.clone(),
        lock: lock.options()?,
        lock_key: lock.key.as_ref().map(|key| key.value.clone()),
        ttl: lock.ttl.as_ref()?.value,
        gates: gates.map(|gate| gate.value).collect(),
        start: draft.start.as_ref().map(|start| start.value.clone()),
        rounds: rounds.or((!goes_on).then_some(1)),
        fields: draft.fields.clone(),
    })
}

fn entry(draft: &DraftEntry, setup: &DraftSetup) -> Option<Entry> {
    let when = draft.when.as_ref().map(|at| at.value.clone());
    Some(Entry {
        name: draft.name.as_ref().map(|name| name.value.clone()),
        when: when.unwrap_or_else(Trigger::at_the_start),
        after: draft.delay(),
        repeat: draft.repeat(),
        steps: WithoutPlaces(setup).steps(&draft.steps)?,
    })
}

/// Turns the steps of a draft into steps without places and with valid names.
struct WithoutPlaces<'a>(&'a DraftSetup);

impl Refine<DraftFault, DraftEnd, At<Span>> for WithoutPlaces<'_> {
    type Fault = Vec<Fault>;
    type End = End;
    type Length = Span;

    /// Returns the faults of which one is to happen.
    fn fault(&mut self, draft: &DraftFault) -> Option<Vec<Fault>> {
        let effect = draft.effect.as_ref()?;
        let scope = match &draft.target {
            DraftTarget::Node(choices) => {
                let fault = |node: &At<String>| self.of_node(draft, node, effect);
                return choices.iter().map(fault).collect();
            }
            DraftTarget::Groups(groups) => {
                let names = |group: &Vec<At<String>>| values(group);
                LinkScope::Between(groups.iter().map(names).collect())
            }
            DraftTarget::Links(patterns) => LinkScope::Matching(values(patterns)),
        };
        Some(vec![links(draft.kind, scope, effect)?])
    }

    fn end(&mut self, end: &DraftEnd) -> Option<End> {
        Some(End {
            by: end.by,
            node: name(&end.node)?,
        })
    }

    fn length(&mut self, length: &At<Span>) -> Span {
        length.value
    }
}

impl WithoutPlaces<'_> {
    fn of_node(&self, draft: &DraftFault, node: &At<String>, effect: &Effect) -> Option<Fault> {
        let ttl = self.0.ttl_of(&node.value)?;
        let longer_than = draft.longer_than.as_ref().map(|at| match at.value {
            Bound::Ttl => ttl,
            Bound::Fixed(fixed) => fixed,
        });
        let node = name(node)?;
        match effect {
            Effect::Node(parameters) => Some(Fault::Node(NodeFault {
                kind: draft.kind,
                node,
                longer_than,
                parameters: *parameters,
            })),
            Effect::Links(_) => links(draft.kind, LinkScope::Around(node), effect),
        }
    }
}

fn values<T: Clone>(all: &[At<T>]) -> Vec<T> {
    all.iter().map(|at| at.value.clone()).collect()
}

fn links(kind: FaultKind, scope: LinkScope, effect: &Effect) -> Option<Fault> {
    match effect {
        Effect::Links(effect) => Some(Fault::Links(LinkFault {
            kind,
            scope,
            effect: effect.clone(),
        })),
        // The catalogue has no effect on nodes for a fault of links.
        Effect::Node(_) => None,
    }
}
