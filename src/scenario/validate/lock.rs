use super::*;
use crate::model::Gate;
use crate::scenario::draft::DraftLock;
use crate::services::{KeyTemplate, LockServers, ReleaseStyle};

/// Checks that the options of each lock do not exclude each other.
pub fn check(check: &Check<'_>, report: &mut Report) {
    let draft = check.draft;
    check_keys(check, report);
    for lock in locks(draft) {
        check_options(lock, report);
    }
    for worker in &draft.workers {
        let lock = worker.lock.as_ref().or(draft.lock.as_ref());
        let Some(options) = lock.and_then(DraftLock::options) else {
            continue;
        };
        let gates = worker.gate.iter().flatten();
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

/// Checks that an observer can read the keys of locks that other libraries make.
fn check_keys(check: &Check<'_>, report: &mut Report) {
    let draft = check.draft;
    if let Some(facts) = check.facts
        && draft.worker.is_ours()
        && facts.workers.iter().all(|worker| worker.backend.is_some())
    {
        for place in locks(draft).filter_map(|lock| lock.places.get("key")) {
            let message = "fencepost's own locks have names of their own; leave `key` out, or say with `worker: { image: … }` who makes the lock";
            report.add(place, message);
        }
    }
    let mut seen: Vec<(LockServers, Option<&KeyTemplate>)> = Vec::new();
    for worker in &draft.workers {
        let Some(lock) = worker.lock.as_ref().or(draft.lock.as_ref()) else {
            continue;
        };
        let Some(servers) = lock.backend.as_ref().map(|at| at.value.servers()) else {
            continue;
        };
        let template = lock.key.as_ref().map(|at| &at.value);
        if let Some(key) = &worker.key
            && key.value.contains('/')
            && template.is_some()
            && servers.program.has_places
        {
            let message = "in an etcd `/` parts a lock from the places in its line: with `lock: { key: … }`, a key has none";
            report.add(key.place, message);
        }
        if seen.contains(&(servers, template)) {
            continue;
        }
        let named = |keys: Option<&KeyTemplate>| {
            keys.cloned()
                .unwrap_or_else(|| KeyTemplate::beginning(servers.program.own_keys))
        };
        let mut others = seen.iter().filter(|other| other.0 == servers);
        if let Some((_, other)) = others.find(|other| named(other.1).overlaps(&named(template))) {
            let place = lock.places.get("key").unwrap_or(worker.name.place);
            let message = format!(
                "`{}` and `{}` can name the same key, and then a bystander counts its lock twice; give all workers of one kind of lock the same `key`",
                named(*other),
                named(template)
            );
            report.add(place, message);
        }
        seen.push((servers, template));
    }
}

/// Returns the scenario's lock, and the workers' own.
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
        && let Some(place) = lock.places.get(field)
    {
        report.add(place, reason);
    }
    if let Some(ttl) = &lock.ttl
        && let Some(reason) = options.backend.ttl_conflict(ttl.value)
    {
        report.add(ttl.place, reason);
    }
}

/// Checks that each lock's backend finds its kind of servers in the topology.
pub fn check_servers(
    draft: &DraftSetup,
    topology: &str,
    facts: &TopologyFacts,
    report: &mut Report,
) {
    let there: Option<Vec<LockServers>> = facts.workers.iter().map(|w| w.servers()).collect();
    // A worker with a protocol of its own may use any servers.
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
