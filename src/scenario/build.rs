use super::draft::{
    Befalls, DraftAction, DraftCase, DraftEntry, DraftFault, DraftLoad, DraftLock, DraftSetup,
    DraftStep, DraftWorker, Kind,
};
use super::validate::{contend_plan, deadline, keyspace_plan};
use super::{Case, Entry, Setup, Step, Trigger, Worker};
use crate::model::{Fault, LinkFault, LinkScope, LoadPlan, Name};
use crate::yaml::At;
use std::time::Duration;

/// A draft that passed validation, without its places and with its defaults.
/// None only where something is missing, and that has been reported.
pub fn case(draft: &DraftCase) -> Option<Case> {
    Some(Case {
        name: name(&draft.name)?,
        fence: draft.fence.as_ref()?.value,
        expect: draft.expect.as_ref()?.without_places(),
        setup: setup(&draft.setup)?,
    })
}

fn name(draft: &At<String>) -> Option<Name> {
    Name::new(draft.value.as_str()).ok()
}

fn setup(draft: &DraftSetup) -> Option<Setup> {
    let lock = draft.lock.as_ref()?;
    let workers = draft.workers.iter();
    let workers = workers.map(|own| worker(own, lock, draft.duration.is_some()));
    let entries = draft.timeline.iter().map(|own| entry(own, draft));
    Some(Setup {
        lock: lock.options()?,
        load: load(draft)?,
        topology: draft.topology.as_ref()?.value.clone(),
        worker_image: draft.image.as_ref().map(|image| image.value.clone()),
        duration: draft.duration.as_ref().map(|duration| duration.value),
        deadline: deadline(draft),
        workers: workers.collect::<Option<_>>()?,
        timeline: entries.collect::<Option<_>>()?,
    })
}

/// None where it is none; a load that could not be read has been reported.
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
    let gates = draft.gates.iter().flatten();
    let length = |at: &Option<At<Duration>>| at.as_ref().map_or(Duration::ZERO, |at| at.value);
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
        work: length(&draft.work),
        pause: length(&draft.pause),
        on_lost: draft
            .on_lost
            .as_ref()
            .map_or_else(Default::default, |on| on.value),
        renew: draft.renew,
        nested: draft.nested,
        reads: draft.reads,
    })
}

fn entry(draft: &DraftEntry, setup: &DraftSetup) -> Option<Entry> {
    let when = draft.when.as_ref().map(|at| at.value.clone());
    Some(Entry {
        name: draft.name.as_ref().map(|name| name.value.clone()),
        when: when.unwrap_or_else(Trigger::at_the_start),
        after: draft.delay(),
        repeat: draft.repeat(),
        steps: steps(&draft.steps, setup)?,
    })
}

fn steps(drafts: &[DraftStep], setup: &DraftSetup) -> Option<Vec<Step>> {
    drafts.iter().map(|draft| step(draft, setup)).collect()
}

fn step(draft: &DraftStep, setup: &DraftSetup) -> Option<Step> {
    Some(match &draft.action {
        DraftAction::Fault(fault) => Step::Inject {
            lasting: fault.lasting.as_ref().map(|at| at.value),
            choices: choices(fault, setup)?,
        },
        DraftAction::Resume(node) => Step::Resume { node: name(node)? },
        DraftAction::Thaw(node) => Step::Thaw { node: name(node)? },
        DraftAction::Heal(entry) => Step::Heal {
            entry: entry.value.clone(),
        },
        DraftAction::Wait(span) => Step::Wait { span: span.value },
        DraftAction::Await(event) => Step::Await {
            event: event.value.clone(),
        },
        DraftAction::Together(inner) => Step::Together {
            steps: steps(inner, setup)?,
        },
    })
}

/// The faults of which one is to happen.
fn choices(draft: &DraftFault, setup: &DraftSetup) -> Option<Vec<Fault>> {
    let kind = draft.kind;
    let (scope, effect) = match &draft.befalls {
        Befalls::Node { choices, how } => {
            let how = how.as_ref()?;
            let fault = |node: &At<String>| {
                let ttl = setup.ttl_of(&node.value)?;
                Some(how.of(name(node)?, ttl))
            };
            return choices.iter().map(fault).collect();
        }
        Befalls::Groups { groups, effect } => {
            let names = |group: &Vec<At<String>>| group.iter().map(|at| at.value.clone()).collect();
            let groups = groups.iter().map(names).collect();
            (LinkScope::Between(groups), effect.clone()?)
        }
        Befalls::Links { patterns, effect } => {
            let patterns = patterns.iter().map(|at| at.value.clone()).collect();
            (LinkScope::Matching(patterns), effect.clone()?)
        }
    };
    Some(vec![Fault::Links(LinkFault {
        kind,
        scope,
        effect,
    })])
}
