//! A topology with its links and two workers that wait, for a nemesis alone.

use crate::support::*;
use async_trait::async_trait;
use fencepost::cluster::topology::{self, Topology};
use fencepost::cluster::{Console, NodeSpec, start_services};
use fencepost::faults::journal::Journal;
use fencepost::faults::{ClockReading, Field, Links, Nemesis, Proof, Reach, Server, WorkerClocks};
use fencepost::model::{Fault, FaultKind, FaultRow, FaultStage, Name, UnprovenReason};
use fencepost::services::{HttpServer, Program, Questions};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

pub const WORKERS: [&str; 2] = ["a", "b"];

pub struct Playground {
    field: Arc<Field>,
    hand: Hand,
    journals: PathBuf,
    cluster: OwnCluster,
    /// Dropping them would end the workers.
    _consoles: Vec<Console>,
}

/// What the nemesis does to its targets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Hand {
    Strikes,
    OnlyPretends,
}

type Rows = Arc<Mutex<Vec<FaultRow>>>;

impl Playground {
    pub async fn start(name: &str, hand: Hand) -> Playground {
        let cluster = own_cluster(name).await;
        // The cluster goes by the plain tags.
        fencepost(&["images"]).expect_code(0);
        let topology = Topology::load(project().join(format!("compose/{name}.yml"))).unwrap();
        let proxy = topology::load_service(project().join("toxiproxy/server.yml"), "toxiproxy");
        let (proxy, reach) = (proxy.unwrap(), reach(&topology));
        let links = Links::start(&*cluster, &proxy, &reach, 1).await.unwrap();

        let lead = |mut node: NodeSpec| {
            node.hosts = links.hosts_of(&node.name);
            node
        };
        let services = topology.started();
        let services = services.map(|(name, service)| lead(service.node(name)));
        let services: Vec<NodeSpec> = services.collect();
        start_services(&*cluster, &services).await.unwrap();
        let mut consoles = Vec::new();
        for name in WORKERS {
            let mut node = lead(topology.workers[0].service.node(&named(name)));
            let waits = ("FENCEPOST_GATES".to_owned(), "start".to_owned());
            node.environment.extend([waits]);
            consoles.push(cluster.start_attached(&node).await.unwrap());
        }

        let services = services.into_iter().map(|node| (node.name.clone(), node));
        let field = Field::new(
            cluster.shared(),
            services.collect(),
            servers(&topology),
            topology.replicas(),
            Box::new(NobodysClocks),
            Some(links),
        );
        Playground {
            field: Arc::new(field),
            hand,
            journals: fresh_folder(&format!("journals-{}", cluster.run)),
            cluster,
            _consoles: consoles,
        }
    }

    /// A nemesis for one case: once it has healed, it does nothing any more.
    pub fn nemesis(&self) -> (Nemesis, Rows) {
        let rows = Rows::default();
        let recorder = Arc::clone(&rows);
        let record = Box::new(move |row| recorder.lock().unwrap().push(row));
        let journal = Journal::new(&self.journals, &self.cluster.run);
        let nemesis = Nemesis::new(Arc::clone(&self.field), journal, record);
        let nemesis = match self.hand {
            Hand::Strikes => nemesis,
            Hand::OnlyPretends => nemesis.pretending(),
        };
        (nemesis, rows)
    }

    /// The fault is proven, and its end as well.
    pub async fn bites_and_heals(&self, fault: &Fault) {
        let shown = format!("{fault:?}");
        let (nemesis, rows) = self.nemesis();
        nemesis.prepare(&[fault]).await.expect(&shown);
        let injected = nemesis.inject(fault, None, None).await.expect(&shown);
        let seen = last(&rows);
        assert_eq!((seen.id, seen.stage), (injected.id, FaultStage::Observed));
        assert!(!seen.detail.is_empty(), "{shown}");
        assert_eq!(
            seen.called(),
            fault.node().map_or(&*seen.target, Name::as_str)
        );
        println!("{} of {}: {}", seen.fault, seen.target, seen.detail);
        nemesis.end(injected.id).await.expect(&shown);
        let end = last(&rows);
        assert!(
            matches!(end.stage, FaultStage::Ended | FaultStage::Observed),
            "{end:?}"
        );
        if end.stage == FaultStage::Ended {
            let rows = rows.lock().unwrap();
            let ending = &rows[rows.len() - 2];
            assert_eq!((ending.id, ending.stage), (end.id, FaultStage::Ending));
        }
        let problems = nemesis.heal().await;
        assert!(problems.is_empty(), "{shown}: {problems:?}");
        assert_eq!(last(&rows), end, "nothing was left to heal");
        let journals = std::fs::read_dir(&self.journals).unwrap();
        assert_eq!(journals.count(), 0, "nothing is owed any more");
    }

    /// Asked for and not done, it is not proven; healing finds nothing wrong.
    pub async fn is_not_taken_in(&self, fault: &Fault) {
        let shown = format!("{fault:?}");
        let (nemesis, rows) = self.nemesis();
        nemesis.prepare(&[fault]).await.expect(&shown);
        let asked = nemesis.inject(fault, None, None).await;
        let reason = asked.expect_err(&shown);
        println!("{reason}");
        let FaultRow { stage, .. } = last(&rows);
        assert_eq!(stage, FaultStage::Unproven, "{shown}");
        let problems = nemesis.heal().await;
        // What was never killed cannot be started anew.
        assert!(
            problems.is_empty() || fault.kind() == FaultKind::Kill,
            "{shown}: {problems:?}"
        );
    }
}

fn last(rows: &Rows) -> FaultRow {
    rows.lock().unwrap().last().cloned().expect("rows")
}

fn reach(topology: &Topology) -> Reach {
    let workers = WORKERS.map(|name| (named(name), topology.reached_by(&topology.workers[0])));
    let services = topology.links();
    let services = services.map(|(name, reached)| (name.clone(), reached.to_vec()));
    workers.into_iter().chain(services).collect()
}

fn servers(topology: &Topology) -> BTreeMap<Name, Server> {
    let mut servers = BTreeMap::new();
    for (name, service) in topology.started() {
        let Some(port) = service.ports.first().map(|port| port.container) else {
            continue;
        };
        let first = name.split('-').next();
        let program = Program::all().into_iter().find(|it| Some(it.name) == first);
        let answers: &'static dyn Questions = match program {
            Some(program) => program.answers,
            None => &HttpServer,
        };
        servers.insert(name.clone(), Server { port, answers });
    }
    servers
}

/// Workers are asked over consoles that only a run has.
struct NobodysClocks;

#[async_trait]
impl WorkerClocks for NobodysClocks {
    async fn read(&self, _: &Name) -> Proof<ClockReading> {
        Err(UnprovenReason::NoClock)
    }
}
