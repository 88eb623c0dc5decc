//! A worker with its stdin and stdout in the test's hands.

use crate::support::redis_address;
use clap::Parser;
use fencepost::model::ReleaseOutcome;
use fencepost::model::{Event, EventKind, Fence, Gate, Step};
use fencepost::resource::{Config, ResourceClient, open};
use fencepost::worker::{WorkerEnd, WorkerError, WorkerTask, run_with};
use std::io::{self, Write};
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

pub const PATIENCE: Duration = Duration::from_secs(10);
/// Nothing ever listens on this port of the reserved ones.
pub const NOBODY: &str = "127.0.0.1:1";

/// A key of its own on the shared Redis, and a resource of its own.
pub struct Place {
    key: String,
    pub resource: String,
    _data: TempDir,
    _stop: DropGuard,
}

impl Place {
    pub async fn new(fence: Fence) -> Place {
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
    pub fn worker(&self, name: &str, flags: &str) -> Worker {
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

    pub async fn stored(&self) -> serde_json::Value {
        let client = ResourceClient::new(&self.resource, PATIENCE).unwrap();
        let stored = client.get(&self.key).await.unwrap().expect("a value");
        serde_json::from_slice(stored.value.as_bytes()).unwrap()
    }
}

pub struct Worker {
    pub lines: Option<mpsc::Sender<String>>,
    events: mpsc::UnboundedReceiver<Event>,
    run: JoinHandle<Result<WorkerEnd, WorkerError>>,
}

impl Worker {
    pub async fn say(&self, line: &str) {
        let lines = self.lines.as_ref().expect("the input is open");
        lines.send(line.to_owned()).await.unwrap();
    }

    pub async fn go(&self, gate: Gate, round: u32) {
        self.say(&format!(r#"{{"go":"{gate}","round":{round}}}"#))
            .await;
    }

    /// Everything up to and including the first event of this name.
    pub async fn told_until(&mut self, name: &str) -> Vec<EventKind> {
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

    pub async fn told_to_the_end(&mut self) -> Vec<EventKind> {
        self.told_until("done").await
    }

    /// It has read everything that it was told, and done nothing about it.
    pub async fn stays_silent(&mut self) {
        self.say(r#"{"tell":"clock"}"#).await;
        let told = self.told_until("clock").await;
        assert_eq!(told.len(), 1, "{told:?}");
    }

    pub async fn end(self) -> Result<WorkerEnd, WorkerError> {
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

/// Where the machine is slow, a lease is renewed once more.
pub fn without_renewals(told: &[EventKind]) -> Vec<&'static str> {
    let mut names = names(told);
    names.retain(|name| *name != "renewed");
    names
}

pub fn names(told: &[EventKind]) -> Vec<&'static str> {
    told.iter().map(EventKind::name).collect()
}

/// How the release of the one round ended.
pub fn outcome(told: &[EventKind]) -> Option<ReleaseOutcome> {
    told.iter().find_map(|kind| match kind {
        EventKind::Released { outcome, .. } => Some(*outcome),
        _ => None,
    })
}

pub fn assert_failed(kind: &EventKind, step: Step) {
    let failed = matches!(kind, EventKind::Failed { during, .. } if *during == step);
    assert!(failed, "{kind:?}");
}
