use super::TopologyFacts;
use super::draft::Draft;
use crate::model::{Gate, LockServers, ReleaseStyle};
use crate::yaml::Report;
use std::time::Duration;

/// With etcd's own heartbeats and elections.
const SHORTEST_ETCD_LEASE: Duration = Duration::from_secs(2);

/// What the lock's own options exclude.
pub fn check(draft: &Draft, report: &mut Report) {
    let Some(lock) = &draft.lock else { return };
    let Some(options) = lock.options() else {
        return;
    };
    if let Some((field, reason)) = options.conflict()
        && let Some(place) = lock.place_of(field)
    {
        report.add(place, reason);
    }
    if let Some(ttl) = &lock.ttl
        && options.backend.servers() == LockServers::Etcd
        && (ttl.value < SHORTEST_ETCD_LEASE || ttl.value.subsec_nanos() > 0)
    {
        // The cluster would grant more than the scenario counts on.
        let message = "etcd counts leases in whole seconds, and grants at least 2s";
        report.add(ttl.place, message);
    }
    if options.release == ReleaseStyle::UnsafeGetThenDel {
        return;
    }
    let gates = draft.workers.iter().flat_map(|worker| &worker.gates);
    for gate in gates.flatten() {
        if gate.value == Gate::BetweenGetAndDel {
            let message = format!(
                "nobody comes to the gate `{}` without `lock: {{ release: {} }}`",
                gate.value,
                ReleaseStyle::UnsafeGetThenDel
            );
            report.add(gate.place, message);
        }
    }
}

/// Whether the lock's backend finds its kind of servers in the topology.
pub fn check_servers(draft: &Draft, topology: &str, facts: &TopologyFacts, report: &mut Report) {
    let backend = draft.lock.as_ref().and_then(|lock| lock.backend.as_ref());
    let (Some(wanted), Some(there)) = (backend, facts.backend) else {
        return;
    };
    if wanted.value.servers() != there.servers() {
        let message = format!(
            "the topology `{topology}` has {}, and `{}` needs {}",
            there.servers(),
            wanted.value,
            wanted.value.servers()
        );
        report.add(wanted.place, message);
    }
}
