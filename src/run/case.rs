//! One case on a cluster of its own, from nothing to nothing.

use super::clock_desk::{ClockDesk, clock_desk};
use super::collect::{collect, save_logs};
use super::evidence::Evidence;
use super::judge::judge_case;
use super::nodes::CaseNodes;
use super::observer::Observer;
use super::phases::Phases;
use super::settle::settle;
use super::stage::{Played, Stage};
use super::{RunError, RunFolder, RunRequest, stop_at};
use crate::cluster::{Cluster, ClusterError, LastLines, Runtime};
use crate::fault::Nemesis;
use crate::fault::journal::Journal;
use crate::model::{CaseNotes, CaseResult, Gap, Name};
use crate::progress::{Progress, Task};
use crate::scenario::Case;
use futures_util::future::join_all;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Runs a case. Healing and removal are on every way out, and what goes wrong
/// with them is said beside what went wrong before.
pub async fn run_case(
    request: &RunRequest<'_>,
    case: &Case,
    folder: &RunFolder,
    runtime: &dyn Runtime,
    progress: &dyn Progress,
    interrupt: &CancellationToken,
) -> Result<CaseResult, RunError> {
    let task = progress.begin(&format!("{} {}", request.scenario.name, case.name));
    let evidence = Arc::new(Evidence::create(folder.case(&case.name))?);
    let mut nodes = CaseNodes::new(request, case);
    let mut clock = Phases::default();

    if let Some(reason) = request.lacking(case, runtime) {
        let notes = CaseNotes {
            workers: nodes.worker_names().into_iter().map(String::from).collect(),
            gaps: vec![format!("cannot be done here: {reason}").into()],
            never_played: true,
            ..CaseNotes::default()
        };
        evidence.notes(&notes)?;
        return judged(case, folder, task.as_ref());
    }
    task.detail("making a network");
    let run = Name::of_id(Uuid::new_v4());
    let cluster = clock
        .time("create", runtime.create(&run, request.keep))
        .await?;
    let (desk, clock_questions) = clock_desk();
    let journal = Journal::new(&request.journals, &run);
    let nemesis = Arc::new(nemesis(request, &nodes, &cluster, &evidence, journal, desk));
    let stage = Stage {
        request,
        setup: &case.setup,
        cluster: &cluster,
        nemesis: &nemesis,
        evidence: &evidence,
        task: task.as_ref(),
    };
    let play = stage.play(&mut nodes, clock_questions, &mut clock);
    let ran = stop_at(interrupt, play).await;

    task.detail("healing");
    let problems = clock.time("heal", nemesis.heal()).await;
    let collected = match ran {
        Ok(Played {
            mut notes,
            unanswered,
            observers,
        }) => {
            task.detail("collecting");
            notes.gaps.extend(problems.into_iter().map(Gap::from));
            for unsaid in join_all(observers.into_iter().map(Observer::stop)).await {
                notes.gaps.extend(unsaid.map(Gap::from));
            }
            let collecting = async {
                if unanswered {
                    notes.settled = settle(&nodes, &cluster, &nemesis).await?;
                }
                collect(&nodes, &cluster, &evidence, &mut notes).await
            };
            let collected = clock.time("collect", stop_at(interrupt, collecting)).await;
            match collected {
                // Why it came to this is known already, and says more.
                Err(error @ (RunError::Resource { .. } | RunError::Cluster(_)))
                    if !notes.gaps.is_empty() =>
                {
                    notes.gaps.push(error.to_string().into());
                    Ok(notes)
                }
                collected => collected.map(|()| notes),
            }
        }
        // What could not be healed is removed.
        Err(RunError::Interrupted) => Err(RunError::Interrupted),
        Err(error) => {
            save_logs(&nodes, &cluster, &evidence).await;
            let healed = match problems.is_empty() {
                true => Ok(()),
                false => Err(RunError::NotHealed(
                    problems.into_iter().map(|it| it.text).collect(),
                )),
            };
            both(Err(with_last_lines(error, &cluster).await), healed)
        }
    };
    if let Err(error) = &collected {
        // A disk that is full has been reported already.
        let mut notes = evidence.so_far(error.to_string());
        notes
            .workers
            .extend(nodes.worker_names().into_iter().map(String::from));
        let _ = evidence.notes(&notes);
    }
    // Whoever interrupts wants it gone, also what was to be kept.
    let keep = request.keep && !matches!(collected, Err(RunError::Interrupted));
    task.detail("removing");
    let removed = match keep {
        true => cluster.keep().await.map(|kept| {
            progress.say(&format!(
                "{} {} is kept: {kept}; `fencepost clean` removes them",
                request.scenario.name, case.name
            ));
        }),
        false => match clock.time("clean", cluster.remove()).await {
            // Nothing of the case is left, and nothing can be done about it here.
            Err(stuck @ ClusterError::StuckNetwork { .. }) => {
                progress.say(&stuck.to_string());
                Ok(())
            }
            removed => removed,
        },
    };
    let mut notes = both(collected, removed.map_err(RunError::from))?;

    notes.measurements = clock.finish();
    evidence.notes(&notes)?;
    judged(case, folder, task.as_ref())
}

fn judged(case: &Case, folder: &RunFolder, task: &dyn Task) -> Result<CaseResult, RunError> {
    let outcome = judge_case(case, &folder.case(&case.name))?;
    task.finish(&outcome.verdict.outcome.to_string());
    Ok(outcome)
}

#[cfg_attr(not(debug_assertions), expect(unused_mut, unused_variables))]
fn nemesis(
    request: &RunRequest<'_>,
    nodes: &CaseNodes,
    cluster: &Arc<dyn Cluster>,
    evidence: &Arc<Evidence>,
    journal: Journal,
    desk: ClockDesk,
) -> Nemesis {
    let field = Arc::new(nodes.field(cluster, desk));
    let recorder = Arc::clone(evidence);
    let record = Box::new(move |row| recorder.fault(&row));
    let mut nemesis = Nemesis::new(field, journal, record);
    #[cfg(debug_assertions)]
    if request.mutant.as_deref() == Some(Nemesis::MUTANT) {
        nemesis = nemesis.pretending();
    }
    nemesis
}

/// A service that ended says why in its log, if anywhere.
async fn with_last_lines(error: RunError, cluster: &Arc<dyn Cluster>) -> RunError {
    let RunError::ServiceEnded { what, node, log } = error else {
        return error;
    };
    let printed = cluster.logs(&node).await.unwrap_or_default();
    let log = log + &LastLines::of(&printed).below();
    RunError::ServiceEnded { what, node, log }
}

fn both<T>(first: Result<T, RunError>, then: Result<(), RunError>) -> Result<T, RunError> {
    match (first, then) {
        (Ok(value), Ok(())) => Ok(value),
        (Err(error), Ok(())) | (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(then)) => Err(RunError::AndThen {
            first: Box::new(first),
            then: Box::new(then),
        }),
    }
}
