//! One case on a cluster of its own, from nothing to nothing.

use super::collect::{collect, save_logs};
use super::drive::{Drive, Happening};
use super::evidence::Evidence;
use super::judge::judge_case;
use super::nodes::CaseNodes;
use super::observer::Observer;
use super::phases::Phases;
use super::workers::Workers;
use super::{RunError, RunFolder, RunRequest, stop_at};
use crate::cluster::{Cluster, Console, LastLines, Runtime};
use crate::fault::Nemesis;
use crate::model::{CaseNotes, CaseResult};
use crate::progress::{Progress, Task};
use crate::resource::ResourceClient;
use crate::scenario::Case;
use futures_util::future::{try_join, try_join_all};
use futures_util::{StreamExt, pin_mut};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Happenings that may wait; whoever reports more is slowed down.
const WAITING_HAPPENINGS: usize = 1024;
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// The exact version of each lock server, by its name.
type ServerVersions = BTreeMap<String, String>;

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
    let nodes = CaseNodes::new(request, case);
    let mut clock = Phases::default();

    task.detail("starting");
    let run = uuid::Uuid::new_v4().simple().to_string()[..10].to_owned();
    let cluster = clock
        .time("create", runtime.create(&run, request.keep))
        .await?;
    let nemesis = Arc::new(nemesis(request, &cluster, &evidence));
    let stage = Stage {
        request,
        nodes: &nodes,
        cluster: &cluster,
        nemesis: &nemesis,
        evidence: &evidence,
        task: task.as_ref(),
    };
    let ran = stop_at(interrupt, stage.play(&mut clock)).await;

    task.detail("healing");
    let problems = clock.time("heal", nemesis.heal()).await;
    let collected = match ran {
        Ok(mut notes) => {
            task.detail("collecting");
            notes.gaps.extend(problems);
            let collecting = collect(&nodes, &cluster, &evidence, &mut notes);
            let collected = clock.time("collect", stop_at(interrupt, collecting)).await;
            collected.map(|()| notes)
        }
        Err(RunError::Interrupted) => Err(RunError::Interrupted),
        Err(error) => {
            save_logs(&nodes, &cluster, &evidence).await;
            Err(with_last_lines(error, &cluster).await)
        }
    };
    if let Err(error) = &collected {
        // A disk that is full has been reported already.
        let _ = evidence.notes(&CaseNotes {
            workers: nodes.worker_names(),
            gaps: vec![error.to_string()],
            ..CaseNotes::default()
        });
    }
    // Whoever interrupts wants it gone, also what was to be kept.
    let keep = request.keep && !matches!(collected, Err(RunError::Interrupted));
    task.detail("removing");
    let removed = match keep {
        true => Ok(()),
        false => clock.time("clean", cluster.remove()).await,
    };
    if keep {
        progress.say(&format!(
            "kept: containers with the label fencepost.run={run}; `fencepost clean` removes them"
        ));
    }
    let mut notes = both(collected, removed.map_err(RunError::from))?;

    notes.measurements = clock.finish();
    evidence.notes(&notes)?;
    let outcome = judge_case(case, &folder.case(&case.name))?;
    task.finish(&outcome.verdict.outcome.to_string());
    Ok(outcome)
}

#[cfg_attr(not(debug_assertions), expect(unused_variables))]
fn nemesis(
    request: &RunRequest<'_>,
    cluster: &Arc<dyn Cluster>,
    evidence: &Arc<Evidence>,
) -> Nemesis {
    let recorder = Arc::clone(evidence);
    let nemesis = Nemesis::new(
        Arc::clone(cluster),
        Box::new(move |row| recorder.fault(&row)),
    );
    #[cfg(debug_assertions)]
    if request.mutant.as_deref() == Some(Nemesis::MUTANT) {
        return nemesis.sending_no_signal();
    }
    nemesis
}

/// What a case is played with.
struct Stage<'a> {
    request: &'a RunRequest<'a>,
    nodes: &'a CaseNodes,
    cluster: &'a Arc<dyn Cluster>,
    nemesis: &'a Arc<Nemesis>,
    evidence: &'a Arc<Evidence>,
    task: &'a dyn Task,
}

impl Stage<'_> {
    /// Starts everything and drives it to its end.
    async fn play(&self, clock: &mut Phases) -> Result<CaseNotes, RunError> {
        let (consoles, ()) = clock
            .time(
                "start",
                try_join(self.start_workers(), self.start_services()),
            )
            .await?;
        let resource = self.resource_client().await?;
        let (send, happenings) = mpsc::channel(WAITING_HAPPENINGS);
        let (observers, versions) = self.observe_lock_servers().await?;
        let node = self.nodes.resource.node.clone();
        let follower = tokio::spawn(follow(node, resource, send.clone()));
        let mut workers = Workers::default();
        for (node, console) in self.nodes.workers.iter().zip(consoles) {
            workers.add(&node.name, console, send.clone());
        }
        let drive = Drive {
            scenario: self.request.scenario,
            workers,
            nemesis: Arc::clone(self.nemesis),
            evidence: self.evidence,
            happenings,
            task: self.task,
        };
        let gaps = clock.time("scenario", drive.run()).await;
        follower.abort();
        let mut gaps = gaps?;
        for observer in observers {
            gaps.extend(observer.stop().await);
        }
        Ok(CaseNotes {
            workers: self.nodes.worker_names(),
            gaps,
            versions,
            ..CaseNotes::default()
        })
    }

    async fn start_services(&self) -> Result<(), RunError> {
        let starts = self
            .nodes
            .services
            .iter()
            .map(|node| self.cluster.start(node));
        try_join_all(starts).await?;
        Ok(())
    }

    async fn start_workers(&self) -> Result<Vec<Console>, RunError> {
        let workers = &self.nodes.workers;
        let starts = workers.iter().map(|node| self.cluster.start_attached(node));
        Ok(try_join_all(starts).await?)
    }

    async fn observe_lock_servers(&self) -> Result<(Vec<Observer>, ServerVersions), RunError> {
        let kind = self.request.scenario.lock.backend.servers();
        let servers = &self.nodes.lock_servers;
        let starts = servers
            .iter()
            .map(|server| Observer::start(self.cluster, self.evidence, kind, server));
        let (observers, versions): (Vec<_>, Vec<_>) =
            try_join_all(starts).await?.into_iter().unzip();
        let names = servers.iter().map(|server| server.node.clone());
        Ok((observers, names.zip(versions).collect()))
    }

    async fn resource_client(&self) -> Result<ResourceClient, RunError> {
        super::collect::resource_client(self.nodes, self.cluster, ANSWER_DEADLINE).await
    }
}

/// The resource's log, row by row as it grows.
async fn follow(node: String, resource: ResourceClient, happenings: mpsc::Sender<Happening>) {
    let ended = |reason: String| Happening::ServiceEnded { node, reason };
    let last = match resource.follow().await {
        Err(error) => ended(error.to_string()),
        Ok(rows) => {
            pin_mut!(rows);
            loop {
                match rows.next().await {
                    Some(Ok(row)) => {
                        if happenings.send(Happening::Row(row)).await.is_err() {
                            return;
                        }
                    }
                    Some(Err(error)) => break ended(error.to_string()),
                    None => break ended("its log ended".to_owned()),
                }
            }
        }
    };
    // Nobody listens any more once the case is over.
    let _ = happenings.send(last).await;
}

/// A service that ended says why in its log, if anywhere.
async fn with_last_lines(error: RunError, cluster: &Arc<dyn Cluster>) -> RunError {
    let RunError::ServiceEnded { what, log } = error else {
        return error;
    };
    let printed = cluster.logs(&what).await.unwrap_or_default();
    let log = log + &LastLines::of(&printed).below();
    RunError::ServiceEnded { what, log }
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
