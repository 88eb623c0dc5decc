use super::{FaultKind, Fence};
use std::collections::BTreeMap;

/// What the scenario says about a case, as far as a judge needs it.
#[derive(Clone, Debug, Default)]
pub struct CasePlan {
    pub fence: Option<Fence>,
    pub workers: BTreeMap<String, WorkerPlan>,
    /// What holds for workers that the scenario does not name: those of a load.
    pub others: Option<WorkerPlan>,
    /// All that the timeline had to do.
    pub faults: Vec<PlannedFault>,
}

impl CasePlan {
    pub fn worker(&self, name: &str) -> Option<&WorkerPlan> {
        self.workers.get(name).or(self.others.as_ref())
    }
}

/// How a worker uses its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerPlan {
    /// The lock service: workers of one service and one key exclude each other.
    pub service: String,
    pub ttl_ns: u64,
    /// Grants follow arrivals.
    pub in_order: bool,
    /// Its holds end with a session that is older than they are, and is kept alive
    /// apart from them.
    pub in_session: bool,
    /// It is this program's own worker, which writes a count that it has read.
    pub is_ours: bool,
}

/// A fault that had to happen so many times, or more often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedFault {
    pub kind: FaultKind,
    /// One of these, by target or by alias; empty where any will do.
    pub targets: Vec<String>,
    pub times: usize,
}
