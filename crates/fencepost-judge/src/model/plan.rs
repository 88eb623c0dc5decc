use super::{ClockName, FaultKind, Fence};
use std::collections::BTreeMap;

/// The scenario's description of a case, as far as a judge needs it.
#[derive(Clone, Debug, Default)]
pub struct CasePlan {
    pub fence: Option<Fence>,
    pub workers: BTreeMap<String, WorkerPlan>,
    /// The plan of workers that the scenario does not name: those of a load.
    pub others: Option<WorkerPlan>,
    /// All faults that the timeline had to inject.
    pub faults: Vec<PlannedFault>,
}

impl CasePlan {
    pub fn worker(&self, name: &str) -> Option<&WorkerPlan> {
        self.workers.get(name).or(self.others.as_ref())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerPlan {
    /// The lock service. Workers of one service and one key exclude each other.
    pub service: String,
    pub service_plan: ServicePlan,
    pub ttl_ns: u64,
    /// Whether grants follow arrivals.
    pub in_order: bool,
    /// Whether it is this program's own worker, which writes a count that it has read.
    pub is_ours: bool,
}

/// The properties of a lock service, as far as a judge needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServicePlan {
    /// Whether holds end with a session that is older than they are, and is kept alive
    /// apart from them.
    pub in_session: bool,
    /// Whether leases go on being renewed while their worker lives, without a report.
    pub renews_silently: bool,
    /// Whether a hold ends as soon as its worker dies, because the servers see the end of its
    /// connection, and not only with its TTL.
    pub ends_with_worker: bool,
    /// Whether its grants are still known after one of its servers was killed.
    pub keeps_grants: bool,
    /// Whether a majority of independent servers grants.
    pub by_majority: bool,
    /// The clock by which its servers end leases.
    pub leases_by: ClockName,
}

impl ServicePlan {
    /// One server, which may lose everything when it is killed.
    pub const ONE_SERVER: ServicePlan = ServicePlan {
        in_session: false,
        renews_silently: false,
        ends_with_worker: false,
        keeps_grants: false,
        by_majority: false,
        leases_by: ClockName::Realtime,
    };
}

/// A fault that had to happen at least `times` times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    pub kind: FaultKind,
    /// The possible targets, by target or by alias; empty if any will do.
    pub targets: Vec<String>,
    pub times: usize,
}
