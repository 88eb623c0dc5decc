use super::TopologyFacts;
use crate::model::{Gate, LockServers, ReleaseStyle};
use crate::scenario::draft::{DraftLock, DraftSetup};
use crate::yaml::Report;

/// What the options of each lock exclude.
pub fn check(draft: &DraftSetup, report: &mut Report) {
    for lock in locks(draft) {
        check_options(lock, report);
    }
    for worker in &draft.workers {
        let lock = worker.lock.as_ref().or(draft.lock.as_ref());
        let Some(options) = lock.and_then(DraftLock::options) else {
            continue;
        };
        let gates = worker.gates.iter().flatten();
        for gate in gates.filter(|gate| gate.value == Gate::BetweenGetAndDel) {
            if options.release != ReleaseStyle::UnsafeGetThenDel {
                let message = format!(
                    "nobody comes to the gate `{}` without `lock: {{ release: {} }}`",
                    gate.value,
                    ReleaseStyle::UnsafeGetThenDel
                );
                report.add(gate.place, message);
            }
        }
    }
}

/// The scenario's lock, and those that workers have of their own.
fn locks(draft: &DraftSetup) -> impl Iterator<Item = &DraftLock> {
    let own = draft
        .workers
        .iter()
        .filter_map(|worker| worker.lock.as_ref());
    draft.lock.iter().chain(own)
}

fn check_options(lock: &DraftLock, report: &mut Report) {
    let Some(options) = lock.options() else {
        return;
    };
    if let Some((field, reason)) = options.conflict()
        && let Some(place) = lock.place_of(field)
    {
        report.add(place, reason);
    }
    if let Some(ttl) = &lock.ttl
        && let Some(reason) = options.backend.ttl_conflict(ttl.value)
    {
        report.add(ttl.place, reason);
    }
}

/// Whether each lock's backend finds its kind of servers in the topology.
pub fn check_servers(
    draft: &DraftSetup,
    topology: &str,
    facts: &TopologyFacts,
    report: &mut Report,
) {
    let there: Option<Vec<LockServers>> = facts.workers.iter().map(|w| w.servers()).collect();
    // Whoever speaks a language of its own may speak to anything.
    let Some(there) = there else { return };
    for wanted in locks(draft).filter_map(|lock| lock.backend.as_ref()) {
        let servers = wanted.value.servers();
        if there.contains(&servers) {
            continue;
        }
        let has: Vec<String> = there.iter().map(ToString::to_string).collect();
        let message = format!(
            "the topology `{topology}` has {}, and `{}` needs {servers}",
            has.join(" and "),
            wanted.value,
        );
        report.add(wanted.place, message);
    }
}
