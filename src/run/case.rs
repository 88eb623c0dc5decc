//! One case on a cluster of its own, from nothing to nothing.

use super::collect::collect;
use super::drive::{Drive, Happening};
use super::evidence::{CaseNotes, Evidence};
use super::nodes::{CaseNodes, Endpoint};
use super::outcome::{CaseOutcome, judge_case};
use super::workers::Workers;
use super::{RunError, RunFolder, RunRequest, stop_at};
use crate::cluster::{Cluster, Console, Runtime};
use crate::dlock::observe_redis;
use crate::fault::Nemesis;
use crate::progress::{Progress, Task};
use crate::resource::ResourceClient;
use crate::scenario::Case;
use futures_util::future::{try_join, try_join_all};
use futures_util::{StreamExt, pin_mut};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Happenings that may wait; whoever reports more is slowed down.
const WAITING_HAPPENINGS: usize = 1024;
const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// Runs a case. Healing and removal are on every way out, and what goes wrong
/// with them is said beside what went wrong before.
pub async fn run_case(
    request: &RunRequest<'_>,
    case: &Case,
    folder: &RunFolder,
    runtime: &dyn Runtime,
    progress: &dyn Progress,
    interrupt: &CancellationToken,
) -> Result<CaseOutcome, RunError> {
    let task = progress.begin(&format!("{} {}", request.scenario.name, case.name));
    let evidence = Arc::new(Evidence::create(folder.case(&case.name))?);
    let nodes = CaseNodes::new(request, case)?;
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
        Err(error) => Err(error),
    };
    task.detail("removing");
    let removed = match request.keep {
        true => Ok(()),
        false => clock.time("clean", cluster.remove()).await,
    };
    let mut notes = both(collected, removed.map_err(RunError::from))?;
    if request.keep {
        progress.say(&format!(
            "kept: containers with the label fencepost.run={run}; `fencepost clean` removes them"
        ));
    }

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
        let mut observers = Vec::new();
        let mut versions = BTreeMap::new();
        for server in &self.nodes.lock_servers {
            let (observer, version) = self.observe(server).await?;
            observers.push(observer);
            versions.insert(server.node.clone(), version);
        }
        let follower = tokio::spawn(follow(resource, send.clone()));
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
            workers: self.nodes.workers.iter().map(|w| w.name.clone()).collect(),
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

    async fn resource_client(&self) -> Result<ResourceClient, RunError> {
        super::collect::resource_client(self.nodes, self.cluster, ANSWER_DEADLINE).await
    }

    /// Puts a bystander beside a lock server; returns once no grant can be
    /// missed, with the server's version.
    async fn observe(&self, server: &Endpoint) -> Result<(Observer, String), RunError> {
        let address = self.cluster.address(&server.node, server.port).await?;
        let (send, mut events) = mpsc::channel(WAITING_HAPPENINGS);
        let (ready, is_ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let (node, stopped) = (server.node.clone(), stop.clone());
        let watching = tokio::spawn(async move {
            let watched = observe_redis(&address.to_string(), &node, send, ready, stopped).await;
            watched.map_err(|error| format!("what {node} held is not known to the end: {error}"))
        });
        let evidence = Arc::clone(self.evidence);
        let writing = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                evidence.lock(&event);
            }
        });
        let observer = Observer {
            stop,
            watching,
            writing,
        };
        match tokio::time::timeout(ANSWER_DEADLINE, is_ready).await {
            Ok(Ok(version)) => Ok((observer, version)),
            _ => Err(RunError::ServiceEnded {
                what: format!("the observer on {}", server.node),
                log: observer.stop().await.unwrap_or_default(),
            }),
        }
    }
}

struct Observer {
    stop: CancellationToken,
    watching: JoinHandle<Result<(), String>>,
    writing: JoinHandle<()>,
}

impl Observer {
    /// Ends the watch; returns why it is incomplete, where it is.
    async fn stop(self) -> Option<String> {
        self.stop.cancel();
        let ended = async {
            let watched = self.watching.await;
            let _ = self.writing.await;
            watched
                .map_err(|error| error.to_string())
                .and_then(|result| result)
        };
        match tokio::time::timeout(ANSWER_DEADLINE, ended).await {
            Ok(result) => result.err(),
            Err(_) => Some("an observer of a lock server did not end".to_owned()),
        }
    }
}

/// The resource's log, row by row as it grows.
async fn follow(resource: ResourceClient, happenings: mpsc::Sender<Happening>) {
    let ended = |reason: String| Happening::ResourceEnded(reason);
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

/// How long each phase took, in milliseconds.
#[derive(Default)]
struct Phases {
    took_ms: BTreeMap<String, u64>,
}

impl Phases {
    async fn time<T>(&mut self, phase: &str, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.await;
        let took = started.elapsed().as_millis() as u64;
        self.took_ms.insert(format!("{phase}_ms"), took);
        done
    }

    /// With everything beyond the scenario's own waiting added up.
    fn finish(mut self) -> BTreeMap<String, u64> {
        let others = self
            .took_ms
            .iter()
            .filter(|(name, _)| *name != "scenario_ms");
        let overhead = others.map(|(_, ms)| ms).sum();
        self.took_ms.insert("overhead_ms".to_owned(), overhead);
        self.took_ms
    }
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
