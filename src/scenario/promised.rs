//! The plan of a case: everything that a judge has to know beside its record.

use super::*;
use crate::model::{CasePlan, PlannedFault, WorkerPlan};

impl Case {
    pub fn plan(&self) -> CasePlan {
        let setup = &self.setup;
        let is_ours = setup.worker.is_ours();
        let workers = setup.workers.iter();
        let workers = workers.map(|worker| {
            let plan = worker_plan(&worker.lock, worker.ttl, is_ours);
            (worker.name.to_string(), plan)
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
    // Each worker decides for itself how it waits for a lock and releases it; the workers of one
    // group share keys with each other and with nobody else.
    let service = lock.backend.service();
    WorkerPlan {
        service: service.group.to_owned(),
        service_plan: service.plan,
        ttl_ns: u64::try_from(ttl.as_nanos()).unwrap_or(u64::MAX),
        // The maker of a foreign lock decides in which order it grants.
        in_order: (service.in_order)(lock) && is_ours,
        is_ours,
    }
}

impl Setup {
    /// Returns the planned faults. Those of an entry that goes on throughout have to happen at
    /// least once.
    fn planned_faults(&self) -> Vec<PlannedFault> {
        let mut planned: Vec<PlannedFault> = Vec::new();
        for entry in &self.timeline {
            let times = match entry.repeat {
                Repeat::Times(times) => times as usize,
                Repeat::Throughout => 1,
            };
            // A later step of a round that goes on throughout may not be reached.
            let sure = match entry.repeat {
                Repeat::Times(_) => entry.steps.len(),
                Repeat::Throughout => 1,
            };
            for step in entry.steps.iter().take(sure) {
                plan(step, times, &mut planned);
            }
        }
        planned
    }
}

/// Adds the faults of a step, as often as its entry is repeated.
fn plan(step: &PlannedStep, times: usize, planned: &mut Vec<PlannedFault>) {
    for step in step.with_inner() {
        let (kind, targets) = match step {
            Step::Inject { fault: choices, .. } => match choices.first() {
                Some(first) => (first.kind(), choices.iter().map(Fault::target).collect()),
                None => continue,
            },
            Step::End(End { by, node }) => (*by, vec![node.to_string()]),
            Step::Together { .. } | Step::Heal { .. } | Step::Wait { .. } | Step::Await { .. } => {
                continue;
            }
        };
        let same = |known: &&mut PlannedFault| known.kind == kind && known.targets == targets;
        match planned.iter_mut().find(same) {
            Some(known) => known.times += times,
            None => planned.push(PlannedFault {
                kind,
                targets,
                times,
            }),
        }
    }
}
