use super::draft::{Bound, Draft, DraftAction, DraftEntry, DraftWorker};
use super::validate::DEFAULT_DEADLINE;
use super::{Action, Case, Entry, Scenario, Worker};
use std::time::Duration;

/// A draft that passed validation, without its places and with its defaults.
pub fn scenario(draft: Draft, text: &str) -> Scenario {
    let ttl = draft.ttl.value;
    let worker = |worker: DraftWorker| Worker {
        name: worker.name.value,
        key: worker.key.value,
        gates: worker.gates.into_iter().map(|gate| gate.value).collect(),
        start: worker.start.map(|start| start.value),
        rounds: worker.rounds.map_or(1, |rounds| rounds.value),
        work: worker.work.map_or(Duration::ZERO, |work| work.value),
        pause: worker.pause.map_or(Duration::ZERO, |pause| pause.value),
        on_lost: worker.on_lost.map_or_else(Default::default, |on| on.value),
        renew: worker.renew,
    };
    let entry = |entry: DraftEntry| Entry {
        line: entry.place.line,
        when: entry.when.value,
        after: entry.after.map_or(Duration::ZERO, |after| after.value),
        action: match entry.action {
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
    };
    Scenario {
        name: draft.name.value,
        about: draft.about.value.trim().to_owned(),
        topology: draft.topology.value,
        backend: draft.backend.value,
        ttl,
        deadline: draft.deadline.map_or(DEFAULT_DEADLINE, |d| d.value),
        workers: draft.workers.into_iter().map(worker).collect(),
        timeline: draft.timeline.into_iter().map(entry).collect(),
        cases: draft
            .cases
            .into_iter()
            .map(|case| Case {
                name: case.name.value,
                fence: case.fence.value,
                expect: case.expect,
            })
            .collect(),
        text: text.to_owned(),
    }
}
