//! A plan, a resource, and somebody who takes everything down.

use crate::support::Silent;
use fencepost::load::{self, ContendPart, LoadError, Recorder, Targets};
use fencepost::load::{Arrivals, ContendPlan};
use fencepost::model::{
    ArrivalRow, CaseRecord, ContendStep, Event, Fence, Judgement, Span, WaitPolicy,
};
use fencepost::resource::{Config, ResourceClient, open};
use fencepost::services::{Backend, LockOptions};
use fencepost_judge::checker::judge;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Longer than any load here lasts, on a machine that is slow.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing ever listens on this port of the reserved ones.
pub const NOBODY: &str = "127.0.0.1:1";
const SEED: u64 = 7;

/// The number of contenders names the key, so each test on a shared server has
/// its own.
pub fn plan(contenders: u32, wait: WaitPolicy) -> ContendPlan {
    ContendPlan {
        lock: LockOptions {
            backend: Backend::Redis,
            wait,
            ..LockOptions::default()
        },
        ttl: Duration::from_secs(30),
        contenders: vec![contenders],
        clients: 3,
        keys: 1,
        arrivals: Arrivals::Closed,
        work: Span::exactly(Duration::from_millis(5)),
        timeout: Duration::from_secs(30),
        duration: Duration::from_millis(1_500),
        floor: None,
    }
}

pub fn open_model(per_second: f64, backlog: u32) -> Arrivals {
    Arrivals::Open {
        per_second: Some(per_second),
        backlog,
    }
}

#[derive(Default)]
struct Book {
    events: Mutex<Vec<Event>>,
    arrivals: Mutex<Vec<ArrivalRow>>,
    granted: watch::Sender<u64>,
}

impl Recorder for Book {
    fn event(&self, event: &Event) {
        self.events.lock().unwrap().push(event.clone());
        if event.kind.name() == "acquired" {
            self.granted.send_modify(|granted| *granted += 1);
        }
    }

    fn arrival(&self, row: &ArrivalRow) {
        self.arrivals.lock().unwrap().push(row.clone());
    }
}

/// A resource of its own, and what a load on it left behind.
pub struct Place {
    pub resource: String,
    book: Arc<Book>,
    pub interrupt: CancellationToken,
    /// Ends the resource.
    pub stop: CancellationToken,
    _data: TempDir,
    _stops: DropGuard,
}

pub struct Came {
    pub steps: Vec<ContendStep>,
    pub arrivals: Vec<ArrivalRow>,
    pub judgement: Judgement,
    pub result: Result<(), LoadError>,
}

impl Place {
    pub async fn new() -> Place {
        let data = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let resource = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let opened = open(Config::new(Fence::On, data.path())).unwrap();
        tokio::spawn(opened.serve(listener, stop.clone().cancelled_owned()));
        Place {
            resource,
            book: Arc::default(),
            interrupt: CancellationToken::new(),
            _data: data,
            _stops: stop.clone().drop_guard(),
            stop,
        }
    }

    /// Completes when so many locks were granted.
    pub fn granted(&self, so_many: u64) -> impl Future<Output = ()> + use<> {
        let mut granted = self.book.granted.subscribe();
        async move {
            let enough = granted.wait_for(|granted| *granted >= so_many);
            let enough = timeout(PATIENCE, enough).await;
            enough.expect("grants in time").expect("a book");
        }
    }

    pub async fn load(&self, plan: &ContendPlan, servers: &[String]) -> Came {
        let (steps, result) = self.steps(plan, servers).await;
        let judgement = self.judgement().await;
        Came {
            steps,
            arrivals: self.book.arrivals.lock().unwrap().clone(),
            judgement,
            result,
        }
    }

    /// For a load that cannot come about: nothing is judged.
    pub async fn refusal(&self, plan: &ContendPlan, servers: &[String]) -> LoadError {
        let (steps, result) = self.steps(plan, servers).await;
        assert!(steps.is_empty(), "{steps:?}");
        assert!(self.book.events.lock().unwrap().is_empty());
        result.expect_err("refused")
    }

    pub async fn steps(
        &self,
        plan: &ContendPlan,
        servers: &[String],
    ) -> (Vec<ContendStep>, Result<(), LoadError>) {
        let targets = Targets {
            lock_servers: servers.to_vec(),
            resource: self.resource.clone(),
        };
        let mut steps = Vec::new();
        let mut on_part = |part: ContendPart<'_>| match part {
            ContendPart::Step(step) => steps.push(step.clone()),
            ContendPart::Uncontended(alone) => panic!("nobody asked for it: {alone:?}"),
        };
        let book: Arc<dyn Recorder> = self.book.clone();
        let interrupt = &self.interrupt;
        let load = load::contend(plan, &targets, SEED, book, &Silent, interrupt, &mut on_part);
        let result = timeout(PATIENCE, load).await.expect("an end in time");
        (steps, result)
    }

    async fn judgement(&self) -> Judgement {
        let client = ResourceClient::new(&self.resource, PATIENCE).unwrap();
        let log = client.log().await.unwrap();
        let history = self.book.events.lock().unwrap().clone();
        let ready = history.iter().filter(|event| event.kind.name() == "ready");
        judge(&CaseRecord {
            workers: ready.map(|event| event.worker.clone()).collect(),
            history,
            log: fencepost::model::Log::from_rows(log),
            ..CaseRecord::default()
        })
    }
}

impl Came {
    /// The one step of a load that went as it should.
    #[track_caller]
    pub fn step(&self) -> &ContendStep {
        self.result.as_ref().expect("to its end");
        let [step] = &self.steps[..] else {
            panic!("{} steps", self.steps.len());
        };
        assert!(step.errors.is_empty(), "{:?}", step.errors);
        step
    }

    /// Every load is judged: nothing broken, nothing in doubt, nobody beside another.
    #[track_caller]
    pub fn is_safe(&self) {
        let judgement = &self.judgement;
        assert_eq!(judgement.violations, []);
        assert_eq!(judgement.doubts, []);
        assert_eq!(judgement.counts.definite_overlaps, 0);
        assert_eq!(judgement.counts.rejections, 0);
        let granted: u64 = self.steps.iter().map(|step| step.acquisitions).sum();
        assert_eq!(judgement.counts.accepted_writes, granted);
    }
}
