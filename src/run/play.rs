//! The middle of a case: services and workers start, and the timeline is driven to its end; or
//! this process makes the load.

use super::case::CaseRun;
use super::clock_desk::ClockQuestions;
use super::collect::ANSWER_DEADLINE;
use super::drive::{Drive, DriveResult};
use super::follow::follow;
use super::load::LoadRun;
use super::observer::Observer;
use super::workers::Workers;
use super::*;
use crate::cluster::{Console, start_services};
use crate::load::{LoadPlan, Targets};
use crate::scenario::timeline::Timeline;
use futures_util::future::{join_all, try_join, try_join_all};
use tokio_util::task::AbortOnDropHandle;

/// The number of happenings that may wait; a sender of more is slowed down.
const WAITING_HAPPENINGS: usize = 1024;

/// The result of a case before its healing.
#[derive(Default)]
pub struct PlayResult {
    pub notes: CaseNotes,
    /// A write may still be under way.
    pub unanswered: bool,
    /// The observers, which are stopped once everything is healed: a server that is cut off cannot
    /// report the last of what it held.
    pub observers: Vec<Observer>,
}

impl CaseRun<'_> {
    pub async fn play(
        &self,
        nemesis: &Arc<Nemesis>,
        questions: ClockQuestions,
    ) -> RunResult<PlayResult> {
        let cluster = nemesis.field.cluster.as_ref();
        if let Some(load) = &self.case.setup.load {
            return self.play_load(cluster, load).await;
        }
        let consoles = self.start(cluster).await?;
        let timeline = Timeline::new(&self.case.setup, self.lab.options.seed);
        if let Some(reason) = self.prepare(nemesis, &timeline).await? {
            return Ok(PlayResult {
                notes: self.never_played(&reason),
                ..PlayResult::default()
            });
        }
        let mut observers = Vec::new();
        let mut notes = self.notes();
        for (server, version, observer) in self.observe(nemesis).await? {
            notes.versions.insert(server, version);
            observers.push(observer);
        }
        let drive = self.drive(nemesis, timeline, consoles, questions);
        let driven = self.phase("scenario", "driving", drive).await?;
        notes.gaps = driven.gaps;
        notes.ended_ns = Some(driven.ended_ns);
        if !notes.gaps.is_empty() {
            self.end_workers(cluster).await;
        }
        Ok(PlayResult {
            notes,
            unanswered: driven.unanswered,
            observers,
        })
    }

    async fn start(&self, cluster: &dyn Cluster) -> RunResult<Vec<Console>> {
        let start = async {
            let workers = self.nodes.workers.iter();
            let workers = try_join_all(workers.map(|node| cluster.start_attached(node)));
            let services = start_services(cluster, &self.nodes.services);
            let (consoles, ()) = try_join(workers, services).await?;
            self.prepare_resource(cluster).await?;
            Ok(consoles)
        };
        self.phase("start", "starting services and workers", start)
            .await
    }

    async fn prepare_resource(&self, cluster: &dyn Cluster) -> RunResult {
        let resource = self.nodes.resource_at();
        let client = resource.client(cluster, ANSWER_DEADLINE).await?;
        client.prepare().await.map_err(|error| RunError::Resource {
            what: "its tables".to_owned(),
            reason: error.to_string(),
        })
    }

    /// Returns why the faults of the timeline cannot be injected here, if they cannot.
    async fn prepare(&self, nemesis: &Nemesis, timeline: &Timeline) -> RunResult<Option<String>> {
        let faults = timeline.faults();
        let prepare = async {
            let impossible = nemesis.prepare(&faults).await.err();
            Ok(impossible.map(|reason| reason.to_string()))
        };
        let detail = "looking whether its faults can be done here";
        self.phase("prepare", detail, prepare).await
    }

    /// Starts an observer for each lock server; returns it with the server's name and exact
    /// version.
    async fn observe(&self, nemesis: &Arc<Nemesis>) -> RunResult<Vec<(String, String, Observer)>> {
        self.task.detail("connecting to the lock servers");
        let watched = self.nodes.watched().into_iter();
        let starts = watched.map(|watched| async {
            let server = watched.server.node.to_string();
            let started = Observer::start(nemesis, &self.evidence, watched);
            let (observer, version) = started.await?;
            Ok((server, version, observer))
        });
        stop_at(&self.stop, try_join_all(starts)).await
    }

    async fn drive(
        &self,
        nemesis: &Arc<Nemesis>,
        timeline: Timeline,
        consoles: Vec<Console>,
        questions: ClockQuestions,
    ) -> RunResult<DriveResult> {
        let (send, happenings) = mpsc::channel(WAITING_HAPPENINGS);
        let resource = self.nodes.resource_at();
        let following = follow(Arc::clone(nemesis), resource, send.clone());
        let _following = AbortOnDropHandle::new(tokio::spawn(following));
        let mut workers = Workers::default();
        for (node, console) in self.nodes.workers.iter().zip(consoles) {
            workers.add(&node.name, console, send.clone());
        }
        let drive = Drive::new(
            &self.case.setup,
            timeline,
            workers,
            nemesis,
            &self.evidence,
            questions,
            self.task.as_ref(),
        );
        drive.run(happenings).await
    }

    /// Kills the workers: what they would do once they are healed is not part of a case that was
    /// given up.
    pub async fn end_workers(&self, cluster: &dyn Cluster) {
        let names = self.nodes.worker_names();
        // A worker that has ended already cannot be killed, and need not be.
        join_all(names.iter().map(|worker| cluster.kill(worker))).await;
    }

    /// Makes the load from this process. Nobody watches the lock servers: that would be measured
    /// too.
    async fn play_load(&self, cluster: &dyn Cluster, plan: &LoadPlan) -> RunResult<PlayResult> {
        let start = async {
            start_services(cluster, &self.nodes.services).await?;
            self.prepare_resource(cluster).await
        };
        self.phase("start", "starting services", start).await?;
        let load = async {
            let address = async |server: &Endpoint| {
                let address = cluster.address(&server.node, server.port).await?;
                Ok::<_, RunError>(address.to_string())
            };
            let lock_servers = self.nodes.lock_servers.iter();
            let lock_servers = try_join_all(lock_servers.map(|(_, server)| address(server)));
            let resource = self.nodes.resource_at();
            let url = resource.url(cluster).await?;
            let targets = Targets {
                lock_servers: lock_servers.await?,
                resource: resource.kind.url_to_write(&url, self.case.fence, false),
            };
            let load = LoadRun {
                plan,
                targets,
                setup: &self.case.setup,
                seed: self.lab.options.seed,
                evidence: &self.evidence,
                task: self.task.as_ref(),
                // An interrupt drops all of this, and the servers are removed.
                interrupt: &CancellationToken::new(),
            };
            load.run().await
        };
        self.phase("scenario", "starting the load", load).await
    }
}
