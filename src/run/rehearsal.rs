//! The first line of somebody else's worker says what it can do. It is asked for before the first
//! case, so that nothing is started for a task that it refuses.

use super::*;
use crate::cluster::{ConsoleLine, NodeSpec};
use crate::conformance::Declared;
use crate::model::EventKind;
use crate::scenario::OwnWorker;
use tokio::time::timeout;
use uuid::Uuid;

/// A worker that says nothing for so long is left to its case, which knows more about it.
const FIRST_LINE: Duration = Duration::from_secs(20);

/// Starts each worker of somebody else's once, without any server, and notes the cases that it
/// refuses.
pub async fn rehearse(lab: &Lab<'_>, scenarios: &[Scenario]) -> RunResult {
    let mut known: Vec<(&OwnWorker, Declared)> = Vec::new();
    let chosen = scenarios.iter().flat_map(|it| {
        let cases = lab.options.chosen(it);
        cases.map(move |case| (format!("{} {}", it.name, case.name), case))
    });
    for (title, case) in chosen {
        let own = &case.setup.worker;
        if own.is_ours() || lab.simulates(case) || lab.lacking(case).is_some() {
            continue;
        }
        let workers = CaseNodes::new(lab, case).workers;
        let declared = known.iter().find(|(it, _)| *it == own);
        let refusal = match (declared, workers.first()) {
            (Some((_, declared)), _) => objection(declared, &workers),
            (None, None) => None,
            (None, Some(first)) => match first_event(lab, first).await? {
                Some(EventKind::Refused { reason }) => Some((first.name.clone(), reason)),
                said => {
                    let declared = declared_in(said);
                    let refusal = objection(&declared, &workers);
                    known.push((own, declared));
                    refusal
                }
            },
        };
        if let Some((worker, reason)) = refusal {
            let reason = format!("worker {worker} refuses its task: {reason}");
            lab.groundwork.refused(title, reason);
        }
    }
    Ok(())
}

/// What the worker of a case can do. Ours can do everything.
#[derive(Default)]
pub struct WorkerLimits(Declared);

impl WorkerLimits {
    /// Asks the worker of a case for its first line.
    pub async fn of(lab: &Lab<'_>, case: &Case) -> RunResult<WorkerLimits> {
        let workers = CaseNodes::new(lab, case).workers;
        match workers.first() {
            Some(first) if !case.setup.worker.is_ours() => {
                let said = first_event(lab, first).await?;
                Ok(WorkerLimits(declared_in(said)))
            }
            _ => Ok(WorkerLimits::default()),
        }
    }

    /// Returns whether the worker can do the tasks of this case.
    pub fn allow(&self, lab: &Lab<'_>, case: &Case) -> bool {
        self.0.only.is_empty() || objection(&self.0, &CaseNodes::new(lab, case).workers).is_none()
    }
}

/// Whoever says anything else is held to nothing.
fn declared_in(said: Option<EventKind>) -> Declared {
    match said {
        Some(EventKind::Ready { lacks, only }) => Declared { lacks, only },
        _ => Declared::default(),
    }
}

/// Returns the first worker with a task that this rules out, and why.
fn objection(declared: &Declared, workers: &[NodeSpec]) -> Option<(Name, String)> {
    workers.iter().find_map(|worker| {
        let settings = worker.environment.iter();
        let settings = settings.map(|(name, value)| (name.as_str(), value.as_str()));
        Some((worker.name.clone(), declared.objection(settings)?))
    })
}

/// Returns the first event of a worker on a cluster of its own; None if it said none in time.
async fn first_event(lab: &Lab<'_>, worker: &NodeSpec) -> RunResult<Option<EventKind>> {
    let run = Name::of_id(Uuid::new_v4()).behind("rehearsal");
    let cluster = lab.runtime.create(&run, false).await?;
    let listening = async {
        let mut console = cluster.start_attached(worker).await.ok()?;
        while let Some(line) = console.lines.recv().await {
            if let ConsoleLine::Out(line) = line {
                return serde_json::from_str::<Event>(&line).ok();
            }
        }
        None
    };
    let heard = stop_at(lab.interrupt, async {
        Ok(timeout(FIRST_LINE, listening).await)
    })
    .await;
    match cluster.remove().await {
        // Only the empty network is left, and nothing can be done about it here.
        Err(stuck @ ClusterError::StuckNetwork { .. }) => lab.progress.say(&stuck.to_string()),
        removed => removed?,
    }
    let event = heard?.ok().flatten();
    Ok(event.map(|event| event.kind))
}
