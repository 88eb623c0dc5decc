//! A case in simulated time: the same workers, driver, nemesis and judge, on simulated servers.

use super::case::CaseRun;
use super::clock_desk::clock_desk;
use super::collect::ask_resource;
use super::drive::{Drive, Happening};
use super::settle::is_still;
use super::workers::Workers;
use super::*;
use crate::clock::PlayedClock;
use crate::cluster::start_services;
use crate::faults::Links;
use crate::model::{ClockName, Fault, FaultClass, Gap, ResourceKind};
use crate::resource::ResourceClient;
use crate::scenario::timeline::Timeline;
use crate::simulation::{ELSEWHERE, SimulatedCluster};
use futures_util::StreamExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tokio_util::task::AbortOnDropHandle;

const WAITING_HAPPENINGS: usize = 1024;

/// Returns why a case cannot be simulated, if it cannot.
pub fn lacking(case: &Case) -> Option<String> {
    let setup = &case.setup;
    let resource = setup.resource.unwrap_or_default();
    let moves_timers = |fault: &&Fault| {
        let is_monotonic = fault.parameters().clock == Some(ClockName::Monotonic);
        let mut workers = setup.workers.iter();
        is_monotonic && workers.any(|worker| Some(&worker.name) == fault.node())
    };
    let what = if setup.load.is_some() {
        "a load is".to_owned()
    } else if setup.attach.is_some() {
        "an attached server is".to_owned()
    } else if !setup.worker.is_ours() {
        "a worker of another image is".to_owned()
    } else if resource != ResourceKind::Http {
        format!("a resource of kind {resource} is")
    } else if let Some(fault) = setup.faults().iter().find(|it| moves_timers(it)) {
        // Their leases and timers go by the clock that all play.
        format!(
            "{} of {}: a worker's monotonic clock is",
            fault.kind(),
            fault.target()
        )
    } else {
        return None;
    };
    Some(format!("{what} not simulated; {ELSEWHERE}"))
}

/// Returns whether a fault needs links that lead through proxies.
fn needs_links(fault: &Fault) -> bool {
    match fault.kind().class() {
        FaultClass::Links
        | FaultClass::Promotion
        | FaultClass::Disconnection
        | FaultClass::PacketLoss => true,
        FaultClass::Stop
        | FaultClass::Continue
        | FaultClass::Kill
        | FaultClass::Restart
        | FaultClass::Clock => false,
    }
}

/// A play in simulated time.
pub struct Simulated {
    pub notes: CaseNotes,
    /// What a search passed over.
    pub missed: Vec<Gap>,
}

impl From<CaseNotes> for Simulated {
    fn from(notes: CaseNotes) -> Simulated {
        let missed = Vec::new();
        Simulated { notes, missed }
    }
}

impl CaseRun<'_> {
    /// Plays the case on a thread of its own, because this one has another runtime already.
    pub fn simulate(&self) -> RunResult<Simulated> {
        std::thread::scope(|scope| scope.spawn(|| self.simulate_here()).join())
            .unwrap_or_else(|_| panicked())
    }

    /// Plays the case on this thread, whose clock goes on when nobody has anything to do.
    pub fn simulate_here(&self) -> RunResult<Simulated> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build();
        let runtime = runtime.map_err(|error| ClusterError::failed("simulate", error))?;
        let play = AssertUnwindSafe(|| runtime.block_on(self.play_simulated()));
        catch_unwind(play).unwrap_or_else(|_| panicked())
    }

    async fn play_simulated(&self) -> RunResult<Simulated> {
        let _clock = PlayedClock::begin();
        let seed = self.lab.options.seed;
        let simulated = SimulatedCluster::new(self.case.fence, seed);
        let cluster: Arc<dyn Cluster> = simulated.clone();
        let mut notes = self.notes();
        for watched in self.nodes.watched() {
            let evidence = Arc::clone(&self.evidence);
            let record = move |row| evidence.lock(&row);
            let version = simulated.observe(&watched.server.node, watched.keys, record);
            let server = watched.server.node.to_string();
            notes.versions.insert(server, version);
        }
        let timeline = Timeline::new(&self.case.setup, seed);
        let (desk, questions) = clock_desk();
        let nemesis = self.nemesis(&cluster, self.simulated_links(&cluster).await?, desk);
        start_services(cluster.as_ref(), &self.nodes.services).await?;
        let (send, happenings) = mpsc::channel(WAITING_HAPPENINGS);
        let mut workers = Workers::default();
        for node in &self.nodes.workers {
            let console = cluster.start_attached(node).await?;
            workers.add(&node.name, console, send.clone());
        }
        if let Err(reason) = nemesis.prepare(&timeline.faults()).await {
            return Ok(self.never_played(&reason.to_string()).into());
        }
        let node = &self.nodes.resource.node;
        let resource = simulated.resource(node)?;
        let _following = AbortOnDropHandle::new(tokio::spawn(follow(resource.clone(), send)));
        let setup = &self.case.setup;
        let (evidence, task) = (&self.evidence, self.task.as_ref());
        let mut drive = Drive::new(
            setup, timeline, workers, &nemesis, evidence, questions, task,
        );
        if self.is_of_a_search {
            drive = drive.of_a_search();
        }
        let driven = stop_at(&self.stop, drive.run(happenings)).await?;
        notes.gaps = driven.gaps;
        if !notes.gaps.is_empty() || !driven.missed.is_empty() {
            self.end_workers(cluster.as_ref()).await;
        }
        let problems = nemesis.heal().await;
        nemesis.ended_with_the_nodes();
        notes.gaps.extend(problems.into_iter().map(Gap::from));
        notes.ended_ns = Some(driven.ended_ns);
        if driven.unanswered && nemesis.field.links().is_ok() {
            // Nothing that was under way from them arrives any more.
            nemesis.hang_up(&self.nodes.worker_names()).await?;
        }
        notes.settled = is_still(&resource).await?;
        ask_resource(&resource, node, &self.evidence, &mut notes).await?;
        let missed = driven.missed;
        Ok(Simulated { notes, missed })
    }

    /// Starts the proxies, if a fault needs them: they cost time.
    async fn simulated_links(&self, cluster: &Arc<dyn Cluster>) -> RunResult<Option<Links>> {
        if !self.case.setup.faults().into_iter().any(needs_links) {
            return Ok(None);
        }
        let (reach, seed) = (self.nodes.reach(), self.lab.options.seed);
        let links = Links::start(cluster.as_ref(), self.lab.toxiproxy, reach, seed);
        Ok(Some(links.await?))
    }
}

fn panicked<T>() -> RunResult<T> {
    let error = ClusterError::failed("simulate", "the simulation panicked");
    Err(RunError::Cluster(error))
}

/// Follows the log of the resource until nobody listens.
async fn follow(resource: ResourceClient, happenings: mpsc::Sender<Happening>) {
    let Ok(mut rows) = resource.follow().await else {
        return;
    };
    while let Some(Ok(row)) = rows.next().await {
        if happenings.send(Happening::Row(row)).await.is_err() {
            return;
        }
    }
}
