//! What a judge has to know about a case, beside its record.

use super::{Case, Repeat, Setup, Step, Worker};
use crate::model::{
    Backend, CasePlan, FaultKind, LoadPlan, LockOptions, PlannedFault, WaitPolicy, WorkerPlan,
};
use std::time::Duration;

impl Case {
    pub fn plan(&self) -> CasePlan {
        let setup = &self.setup;
        let is_ours = setup.worker_image.is_none();
        let workers = setup.workers.iter();
        let workers = workers.map(|worker| {
            let Worker {
                name, lock, ttl, ..
            } = worker;
            (name.to_string(), worker_plan(lock, *ttl, is_ours))
        });
        CasePlan {
            fence: Some(self.fence),
            workers: workers.collect(),
            others: setup.load.as_ref().and_then(of_load),
            faults: setup.planned_faults(),
        }
    }
}

fn of_load(load: &LoadPlan) -> Option<WorkerPlan> {
    match load {
        LoadPlan::Contend(plan) => Some(worker_plan(&plan.lock, plan.ttl, true)),
        LoadPlan::Keyspace(_) => None,
    }
}

fn worker_plan(lock: &LockOptions, ttl: Duration, is_ours: bool) -> WorkerPlan {
    // Who waits for a lock, and how it is given back, is each worker's own affair;
    // these share keys with each other and with nobody else.
    let service = match lock.backend {
        Backend::Redlock | Backend::RedlockUnsafeTokens => Backend::Redlock,
        other => other,
    };
    let in_order = match lock.backend {
        Backend::Redis => lock.wait == WaitPolicy::Queue,
        Backend::Redlock | Backend::RedlockUnsafeTokens => false,
        Backend::Etcd | Backend::EtcdLockApi => true,
    };
    WorkerPlan {
        service: service.to_string(),
        ttl_ns: u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX),
        // Who makes a foreign lock decides in which order it grants.
        in_order: in_order && is_ours,
        in_session: matches!(lock.backend, Backend::Etcd | Backend::EtcdLockApi),
        is_ours,
    }
}

impl Setup {
    /// Faults of an entry that goes on throughout have to happen at least once.
    fn planned_faults(&self) -> Vec<PlannedFault> {
        let mut planned: Vec<PlannedFault> = Vec::new();
        for entry in &self.timeline {
            let times = match entry.repeat {
                Repeat::Times(times) => times as usize,
                Repeat::Throughout => 1,
            };
            // What comes later in a round that goes on throughout may not be reached.
            let sure = match entry.repeat {
                Repeat::Times(_) => entry.steps.len(),
                Repeat::Throughout => 1,
            };
            for step in entry.steps.iter().take(sure) {
                step.plan(times, &mut planned);
            }
        }
        planned
    }
}

impl Step {
    fn plan(&self, times: usize, planned: &mut Vec<PlannedFault>) {
        let mut add = |kind: FaultKind, targets: Vec<String>| {
            let same = |known: &&mut PlannedFault| known.kind == kind && known.targets == targets;
            match planned.iter_mut().find(same) {
                Some(known) => known.times += times,
                None => planned.push(PlannedFault {
                    kind,
                    targets,
                    times,
                }),
            }
        };
        match self {
            Step::Inject { choices, .. } => {
                if let Some(first) = choices.first() {
                    let targets = choices.iter().map(|fault| fault.target());
                    add(first.kind(), targets.collect());
                }
            }
            Step::Resume { node } => add(FaultKind::Resume, vec![node.to_string()]),
            Step::Thaw { node } => add(FaultKind::Thaw, vec![node.to_string()]),
            Step::Together { steps } => steps.iter().for_each(|step| step.plan(times, planned)),
            Step::Heal { .. } | Step::Wait { .. } | Step::Await { .. } => {}
        }
    }
}
