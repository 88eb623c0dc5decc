//! A case is played: links, services and workers come up, and the timeline is
//! driven to its end.

use super::clock_desk::ClockQuestions;
use super::drive::Drive;
use super::evidence::Evidence;
use super::follow::Follower;
use super::load::{LoadRun, Loaded};
use super::nodes::CaseNodes;
use super::observer::Observer;
use super::phases::Phases;
use super::workers::Workers;
use super::{RunError, RunRequest};
use crate::cluster::topology::Endpoint;
use crate::cluster::{Cluster, Console, start_services};
use crate::fault::{Links, Nemesis};
use crate::load::Targets;
use crate::model::{CaseNotes, LoadPlan};
use crate::progress::Task;
use crate::scenario::Setup;
use crate::scenario::timeline::Timeline;
use futures_util::future::{join_all, try_join, try_join_all};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Happenings that may wait; whoever reports more is slowed down.
const WAITING_HAPPENINGS: usize = 1024;

/// The exact version of each lock server, by its name.
type ServerVersions = BTreeMap<String, String>;

/// What a case is played with.
pub struct Stage<'a> {
    pub request: &'a RunRequest<'a>,
    pub setup: &'a Setup,
    pub cluster: &'a Arc<dyn Cluster>,
    pub nemesis: &'a Arc<Nemesis>,
    pub evidence: &'a Arc<Evidence>,
    pub task: &'a dyn Task,
}

/// What is known of a case before its healing.
pub struct Played {
    pub notes: CaseNotes,
    /// Some write may still be under way.
    pub unanswered: bool,
    /// To be stopped once everything is healed: a server that is cut off cannot
    /// tell the last of what it held.
    pub observers: Vec<Observer>,
}

impl Stage<'_> {
    /// Starts everything and drives it to its end.
    pub async fn play(
        &self,
        nodes: &mut CaseNodes,
        clock_questions: ClockQuestions,
        clock: &mut Phases,
    ) -> Result<Played, RunError> {
        if let Some(load) = &self.setup.load {
            return self.play_load(nodes, load, clock).await;
        }
        self.task.detail("starting proxies");
        clock.time("links", self.start_links(nodes)).await?;
        self.task.detail("starting services and workers");
        let start = try_join(self.start_workers(nodes), self.start_services(nodes));
        let (consoles, ()) = clock.time("start", start).await?;
        let mut notes = CaseNotes {
            workers: nodes.worker_names().into_iter().map(String::from).collect(),
            ..CaseNotes::default()
        };
        let timeline = Timeline::new(self.setup, self.request.seed);
        let faults = timeline.faults();
        self.task
            .detail("looking whether its faults can be done here");
        let prepare = self.nemesis.prepare(&faults);
        if let Err(reason) = clock.time("prepare", prepare).await {
            notes.gaps = vec![format!("cannot be done here: {reason}").into()];
            notes.never_played = true;
            return Ok(Played {
                notes,
                unanswered: false,
                observers: Vec::new(),
            });
        }
        self.task.detail("connecting to the lock servers");
        let (send, happenings) = mpsc::channel(WAITING_HAPPENINGS);
        let (observers, versions) = self.observe_lock_servers(nodes).await?;
        let follower = Follower {
            cluster: Arc::clone(self.cluster),
            nemesis: Arc::clone(self.nemesis),
            resource: nodes.resource.clone(),
            happenings: send.clone(),
        };
        let following = AbortOnDropHandle::new(tokio::spawn(follower.follow()));
        let mut workers = Workers::default();
        for (node, console) in nodes.workers.iter().zip(consoles) {
            workers.add(&node.name, console, send.clone());
        }
        let drive = Drive {
            setup: self.setup,
            workers,
            nemesis: Arc::clone(self.nemesis),
            evidence: self.evidence,
            happenings,
            clock_questions,
            task: self.task,
        };
        let driven = clock.time("scenario", drive.run(timeline)).await;
        drop(following);
        let driven = driven?;
        notes.gaps = driven.gaps;
        if !notes.gaps.is_empty() {
            self.end_workers(nodes).await;
        }
        notes.versions = versions;
        notes.ended_ns = Some(driven.ended_ns);
        Ok(Played {
            notes,
            unanswered: driven.unanswered,
            observers,
        })
    }

    /// The load comes from this process. Nobody watches the lock servers: that would
    /// be measured with them.
    async fn play_load(
        &self,
        nodes: &CaseNodes,
        plan: &LoadPlan,
        clock: &mut Phases,
    ) -> Result<Played, RunError> {
        self.task.detail("starting services");
        clock.time("start", self.start_services(nodes)).await?;
        let addresses = nodes.lock_servers.iter();
        let addresses = addresses.map(|(_, server)| self.address(server));
        let lock_servers = try_join_all(addresses).await?;
        let resource = self.address(&nodes.resource).await?;
        let load = LoadRun {
            plan,
            kind: self.setup.lock.backend.servers(),
            targets: Targets {
                lock_servers,
                resource: format!("http://{resource}"),
            },
            seed: self.request.seed,
            deadline: self.setup.deadline,
            evidence: self.evidence,
            task: self.task,
            // Whoever interrupts drops all of this, and the servers are removed.
            interrupt: &CancellationToken::new(),
        };
        let Loaded { notes, unanswered } = clock.time("scenario", load.run()).await?;
        Ok(Played {
            notes,
            unanswered,
            observers: Vec::new(),
        })
    }

    async fn address(&self, server: &Endpoint) -> Result<String, RunError> {
        let address = self.cluster.address(&server.node, server.port).await?;
        Ok(address.to_string())
    }

    async fn start_links(&self, nodes: &mut CaseNodes) -> Result<(), RunError> {
        let RunRequest {
            toxiproxy: server,
            seed,
            ..
        } = *self.request;
        let links = Links::start(self.cluster.as_ref(), server, nodes.reach(), seed).await?;
        nodes.lead_through(&links);
        // Nobody else sets them.
        let _ = self.nemesis.field.links.set(links);
        Ok(())
    }

    async fn start_services(&self, nodes: &CaseNodes) -> Result<(), RunError> {
        Ok(start_services(self.cluster.as_ref(), &nodes.services).await?)
    }

    async fn start_workers(&self, nodes: &CaseNodes) -> Result<Vec<Console>, RunError> {
        let starts = nodes.workers.iter();
        let starts = starts.map(|node| self.cluster.start_attached(node));
        Ok(try_join_all(starts).await?)
    }

    /// What they would do once they are healed is not part of a case that was
    /// given up.
    async fn end_workers(&self, nodes: &CaseNodes) {
        let names = nodes.worker_names();
        let ended = names.iter().map(|worker| async {
            // One that has ended already cannot be killed, and need not be.
            let _ = self.cluster.kill(worker).await;
        });
        join_all(ended).await;
    }

    async fn observe_lock_servers(
        &self,
        nodes: &CaseNodes,
    ) -> Result<(Vec<Observer>, ServerVersions), RunError> {
        let watched = nodes.watched();
        let starts = watched.iter().map(|watched| {
            let watched = watched.clone();
            Observer::start(self.cluster, self.nemesis, self.evidence, watched)
        });
        let (observers, versions): (Vec<_>, Vec<_>) =
            try_join_all(starts).await?.into_iter().unzip();
        let names = watched
            .into_iter()
            .map(|watched| watched.server.node.to_string());
        Ok((observers, names.zip(versions).collect()))
    }
}
