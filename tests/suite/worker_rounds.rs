//! A worker against a real Redis and a real resource, with its stdin and
//! stdout in the test's hands.

use crate::support::{docker_shared, redis_address};
use clap::Parser;
use fencepost::model::{Event, EventKind, Fence, Gate, ReleaseOutcome, Step};
use fencepost::resource::{Config, ResourceClient, open};
use fencepost::worker::{WorkerEnd, WorkerError, WorkerTask, run_with};
use std::io::{self, Write};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(10);
/// Nothing ever listens on this port of the reserved ones.
const NOBODY: &str = "127.0.0.1:1";

#[tokio::test]
async fn a_round_is_told_from_ready_to_done() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--work 1ms --rounds 2");
    let told = worker.told_to_the_end().await;
    let names: Vec<_> = told.iter().map(EventKind::name).collect();
    let round = [
        "acquiring",
        "acquired",
        "writing",
        "write_accepted",
        "releasing",
        "released",
    ];
    let expected = [&["ready"][..], &round, &round, &["done"]].concat();
    assert_eq!(names, expected);
    assert_eq!(told.last(), Some(&EventKind::Done { rounds: 2 }));
    assert_eq!(worker.end().await.unwrap(), WorkerEnd::Done);

    let stored = place.stored().await;
    assert_eq!(
        stored["count"], 2,
        "the second round read what the first wrote"
    );
    assert_eq!(stored["by"], "a");
}

#[tokio::test]
async fn gates_hold_a_worker_until_their_go() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    let all = Gate::ALL.map(Gate::name).join(",");
    let mut worker = place.worker("a", &format!("--gates {all}"));
    for (gate, round) in [
        (Gate::Start, 0),
        (Gate::AfterAcquire, 1),
        (Gate::BeforeWrite, 1),
        (Gate::BeforeRelease, 1),
    ] {
        let told = worker.told_until("at_gate").await;
        assert_eq!(told.last(), Some(&EventKind::AtGate { round, gate }));
        worker.say("this is not for a worker").await;
        worker.stays_silent().await;
        worker.go(gate, round).await;
    }
    worker.told_until("done").await;
}

#[tokio::test]
async fn the_write_leaves_after_its_gate_though_the_lease_is_lost() {
    let Some(_turn) = docker_shared() else { return };
    for (fence, verdict) in [
        (Fence::On, "write_rejected"),
        (Fence::Off, "write_accepted"),
    ] {
        let place = Place::new(fence).await;
        // A watchdog would keep the lease: a frozen process has none, and nor has this one.
        let mut late = place.worker("late", "--ttl 200ms --gates before_write");
        late.told_until("at_gate").await;
        let mut next = place.worker("next", "--work 1ms");
        let told = next.told_until("write_accepted").await;
        assert!(names(&told).contains(&"acquired"));
        next.told_until("done").await;

        late.go(Gate::BeforeWrite, 1).await;
        let told = late.told_until("done").await;
        assert_eq!(
            names(&told),
            ["writing", verdict, "releasing", "released", "done"]
        );
        let outcome = ReleaseOutcome::Expired;
        assert!(matches!(&told[3], EventKind::Released { outcome: o, .. } if *o == outcome));
        let by = if fence == Fence::On { "next" } else { "late" };
        let stored = place.stored().await;
        assert_eq!((&stored["by"], &stored["count"]), (&by.into(), &1.into()));
    }
}

#[tokio::test]
async fn a_worker_that_sees_its_lease_lost_stops_or_goes_on_as_it_was_told() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    let flags = "--ttl 100ms --work 1ms --pause 150ms --renew";
    let told = place.worker("a", flags).told_to_the_end().await;
    assert_eq!(
        names(&told)[3..],
        ["lost", "releasing", "released", "done"],
        "the watchdog stood still with the rest"
    );
    let flags = format!("{flags} --on-lost ignore");
    let told = place.worker("a", &flags).told_to_the_end().await;
    assert_eq!(
        names(&told)[3..],
        [
            "lost",
            "writing",
            "write_accepted",
            "releasing",
            "released",
            "done"
        ]
    );
}

#[tokio::test]
async fn work_ends_early_when_the_lease_is_lost() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--ttl 100ms --work 60s");
    let told = worker.told_to_the_end().await;
    assert_eq!(names(&told)[3..], ["lost", "releasing", "released", "done"]);
}

#[tokio::test]
async fn a_watchdog_keeps_the_lease_through_long_work() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--ttl 300ms --work 900ms --renew");
    let told = worker.told_to_the_end().await;
    assert!(names(&told).contains(&"renewed"));
    assert!(names(&told).contains(&"write_accepted"));
    let outcome = ReleaseOutcome::Released;
    assert!(
        told.iter()
            .any(|kind| matches!(kind, EventKind::Released { outcome: o, .. } if *o == outcome))
    );
}

#[tokio::test]
async fn the_end_of_the_input_ends_a_worker_in_the_middle() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--work 60s --ttl 120s");
    worker.told_until("acquired").await;
    drop(worker.lines.take());
    assert_eq!(worker.end().await.unwrap(), WorkerEnd::Stopped);
}

#[tokio::test]
async fn servers_that_are_not_there_are_failures_with_a_deadline() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    let flags = format!("--endpoints {NOBODY} --acquire-timeout 200ms");
    let told = place.worker("a", &flags).told_to_the_end().await;
    assert_eq!(names(&told), ["ready", "acquiring", "failed", "done"]);
    assert_failed(&told[2], Step::Acquire);

    let flags = format!("--resource http://{NOBODY}");
    let told = place.worker("a", &flags).told_to_the_end().await;
    assert_eq!(
        names(&told)[2..],
        ["acquired", "failed", "releasing", "released", "done"]
    );
    assert_failed(&told[3], Step::Read);
}

#[tokio::test]
async fn a_task_that_cannot_be_done_is_refused_at_once() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    for flags in ["--endpoints a:1,b:2", "--ttl 0ms", "--resource nowhere"] {
        assert!(place.worker("a", flags).end().await.is_err(), "{flags}");
    }
}

#[tokio::test]
async fn metrics_are_served_while_the_worker_lives() {
    let Some(_turn) = docker_shared() else { return };
    let place = Place::new(Fence::On).await;
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let flags = format!("--metrics {address} --gates before_release");
    let mut worker = place.worker("a", &flags);
    worker.told_until("at_gate").await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    for line in ["lock_acquire_successes_total 1", "lock_leases_held 1"] {
        assert!(page.contains(line), "{page}");
    }
}

/// A key of its own on the shared Redis, and a resource of its own.
struct Place {
    key: String,
    resource: String,
    _data: TempDir,
    _stop: DropGuard,
}

impl Place {
    async fn new(fence: Fence) -> Place {
        let data = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let resource = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let config = Config::new(fence, data.path());
        let opened = open(config).unwrap();
        tokio::spawn(opened.serve(listener, stop.clone().cancelled_owned()));
        Place {
            key: format!("test-{}", Uuid::new_v4()),
            resource,
            _data: data,
            _stop: stop.drop_guard(),
        }
    }

    /// Flags of its own can point a worker elsewhere.
    fn worker(&self, name: &str, flags: &str) -> Worker {
        #[derive(Parser)]
        struct Line {
            #[command(flatten)]
            task: WorkerTask,
        }
        let mut line = format!("worker --name {name} --key {} {flags}", self.key);
        for (flag, value) in [
            ("--endpoints", redis_address()),
            ("--resource", self.resource.clone()),
        ] {
            if !flags.contains(flag) {
                line += &format!(" {flag} {value}");
            }
        }
        let task = Line::parse_from(line.split_whitespace()).task;
        let (lines_tx, lines_rx) = mpsc::channel(8);
        let (events_tx, events_rx) = mpsc::unbounded_channel();
        Worker {
            lines: Some(lines_tx),
            events: events_rx,
            run: tokio::spawn(run_with(task, lines_rx, Lines(events_tx))),
        }
    }

    async fn stored(&self) -> serde_json::Value {
        let client = ResourceClient::new(&self.resource, PATIENCE).unwrap();
        let stored = client.get(&self.key).await.unwrap().expect("a value");
        serde_json::from_slice(stored.value.as_bytes()).unwrap()
    }
}

struct Worker {
    lines: Option<mpsc::Sender<String>>,
    events: mpsc::UnboundedReceiver<Event>,
    run: JoinHandle<Result<WorkerEnd, WorkerError>>,
}

impl Worker {
    async fn say(&self, line: &str) {
        let lines = self.lines.as_ref().expect("the input is open");
        lines.send(line.to_owned()).await.unwrap();
    }

    async fn go(&self, gate: Gate, round: u32) {
        self.say(&format!(r#"{{"go":"{gate}","round":{round}}}"#))
            .await;
    }

    /// Everything up to and including the first event of this name.
    async fn told_until(&mut self, name: &str) -> Vec<EventKind> {
        let mut told = Vec::new();
        let telling = async {
            while let Some(event) = self.events.recv().await {
                told.push(event.kind);
                if told.last().is_some_and(|kind| kind.name() == name) {
                    return;
                }
            }
        };
        let in_time = timeout(PATIENCE, telling).await.is_ok();
        let came = told.last().is_some_and(|kind| kind.name() == name);
        assert!(in_time && came, "{name} did not come: {told:?}");
        told
    }

    async fn told_to_the_end(&mut self) -> Vec<EventKind> {
        self.told_until("done").await
    }

    async fn stays_silent(&mut self) {
        let silence = timeout(Duration::from_millis(50), self.events.recv()).await;
        assert!(silence.is_err(), "{silence:?}");
    }

    async fn end(self) -> Result<WorkerEnd, WorkerError> {
        timeout(PATIENCE, self.run).await.unwrap().unwrap()
    }
}

/// A stdout: it takes whole lines and hands on the events in them.
struct Lines(mpsc::UnboundedSender<Event>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert_eq!(bytes.last(), Some(&b'\n'), "one write, one line");
        let event = serde_json::from_slice(bytes)?;
        self.0.send(event).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn names(told: &[EventKind]) -> Vec<&'static str> {
    told.iter().map(EventKind::name).collect()
}

fn assert_failed(kind: &EventKind, step: Step) {
    let failed = matches!(kind, EventKind::Failed { during, .. } if *during == step);
    assert!(failed, "{kind:?}");
}
