use super::draft::{Bound, Draft, DraftAction, DraftCase, DraftEntry, DraftWorker};
use super::validate::DEFAULT_DEADLINE;
use super::{Action, Case, Entry, Scenario, Worker};
use std::time::Duration;

/// A draft that passed validation, without its places and with its defaults.
/// None only where something is missing, and that has been reported.
pub fn scenario(draft: Draft, text: &str) -> Option<Scenario> {
    let lock = draft.lock?;
    let ttl = lock.ttl.as_ref()?.value;
    Some(Scenario {
        name: draft.name?.value,
        about: draft.about?.value.trim().to_owned(),
        topology: draft.topology?.value,
        lock: lock.options()?,
        ttl,
        deadline: draft.deadline.map_or(DEFAULT_DEADLINE, |d| d.value),
        workers: draft
            .workers
            .into_iter()
            .map(worker)
            .collect::<Option<_>>()?,
        timeline: draft
            .timeline
            .into_iter()
            .map(|draft| entry(draft, ttl))
            .collect::<Option<_>>()?,
        cases: draft.cases.into_iter().map(case).collect::<Option<_>>()?,
        text: text.to_owned(),
    })
}

fn worker(draft: DraftWorker) -> Option<Worker> {
    let gates = draft.gates.unwrap_or_default().into_iter();
    Some(Worker {
        name: draft.name.value,
        key: draft.key?.value,
        gates: gates.map(|gate| gate.value).collect(),
        start: draft.start.map(|start| start.value),
        rounds: draft.rounds.map_or(1, |rounds| rounds.value),
        work: draft.work.map_or(Duration::ZERO, |work| work.value),
        pause: draft.pause.map_or(Duration::ZERO, |pause| pause.value),
        on_lost: draft.on_lost.map_or_else(Default::default, |on| on.value),
        renew: draft.renew,
    })
}

fn entry(draft: DraftEntry, ttl: Duration) -> Option<Entry> {
    Some(Entry {
        when: draft.when?.value,
        after: draft.after.map_or(Duration::ZERO, |after| after.value),
        action: match draft.action? {
            DraftAction::Pause {
                target,
                lasting,
                longer_than,
            } => Action::Pause {
                target: target.value,
                lasting: lasting.map(|at| at.value),
                longer_than: longer_than.map(|at| match at.value {
                    Bound::Ttl => ttl,
                    Bound::Fixed(fixed) => fixed,
                }),
            },
            DraftAction::Resume { target } => Action::Resume {
                target: target.value,
            },
        },
    })
}

fn case(draft: DraftCase) -> Option<Case> {
    Some(Case {
        name: draft.name.value,
        fence: draft.fence?.value,
        expect: draft.expect?,
    })
}
