//! A cluster in memory: its workers are pipes of which a test holds the other end, and the test
//! decides what a signal does to them.

use super::*;
use crate::model::{Event, EventKind};
use std::collections::VecDeque;
use std::sync::Mutex;
use tokio::io::{AsyncBufReadExt, BufReader, DuplexStream, Lines, duplex};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The largest line that waits in a pipe.
const PIPE_BYTES: usize = 1024;

#[derive(Default)]
pub struct FakeCluster {
    signals_take: Option<Duration>,
    workers: Mutex<BTreeMap<Name, FakeWorker>>,
    /// The last signal of each node, and the moment at which it takes effect.
    signals: Mutex<BTreeMap<Name, (Signal, Instant)>>,
    /// The answers to looks at threads, whatever the signals do; the last answer stays.
    looks: Mutex<VecDeque<Look>>,
}

/// The threads of a process, or the error of an engine that looks at a process which ends in that
/// very moment.
pub type Look = Result<Vec<ThreadState>, &'static str>;

pub struct FakeWorker {
    name: String,
    stdin: Lines<BufReader<DuplexStream>>,
    print: mpsc::Sender<ConsoleLine>,
}

impl FakeWorker {
    pub async fn says(&self, kind: EventKind) {
        let event = Event {
            at_ns: 1,
            worker: self.name.clone(),
            kind,
        };
        self.prints(&serde_json::to_string(&event).unwrap()).await;
    }

    pub async fn prints(&self, line: &str) {
        let line = ConsoleLine::Out(line.to_owned());
        self.print.send(line).await.unwrap();
    }

    /// Prints its last words and ends.
    pub async fn fails(self, words: &str) {
        let line = ConsoleLine::Err(words.to_owned());
        self.print.send(line).await.unwrap();
    }

    /// Returns the next line that it is told; None if its stdin has ended.
    pub async fn told(&mut self) -> Option<String> {
        self.stdin.next_line().await.unwrap()
    }
}

impl FakeCluster {
    /// Creates a cluster in which a signal takes this long to stop or end a process; without a
    /// time, no signal ever does.
    pub fn new(signals_take: Option<Duration>) -> FakeCluster {
        FakeCluster {
            signals_take,
            ..FakeCluster::default()
        }
    }

    /// Creates a cluster that answers every look at the threads from a list.
    pub fn with_looks(looks: impl IntoIterator<Item = Look>) -> FakeCluster {
        FakeCluster {
            looks: Mutex::new(looks.into_iter().collect()),
            ..FakeCluster::default()
        }
    }

    pub fn worker(&self, name: &str) -> FakeWorker {
        let worker = self.workers.lock().unwrap().remove(name);
        worker.expect("a worker that was started")
    }

    pub fn is_stopped(&self, node: &str) -> bool {
        self.effect(node) == Some(Signal::Stop)
    }

    /// Returns the last signal, once it has taken effect.
    fn effect(&self, node: &str) -> Option<Signal> {
        let signals = self.signals.lock().unwrap();
        let (signal, done_at) = *signals.get(node)?;
        (Instant::now() >= done_at).then_some(signal)
    }
}

#[async_trait]
impl Cluster for FakeCluster {
    async fn start_attached(&self, node: &NodeSpec) -> ClusterResult<Console> {
        let (ours, its) = duplex(PIPE_BYTES);
        let (print, lines) = mpsc::channel(ConsoleLine::MOST_WAITING);
        let worker = FakeWorker {
            name: node.name.to_string(),
            stdin: BufReader::new(its).lines(),
            print,
        };
        let mut workers = self.workers.lock().unwrap();
        workers.insert(node.name.clone(), worker);
        Ok(Console {
            stdin: Stdin(Box::pin(ours)),
            lines,
        })
    }

    async fn signal(&self, node: &Name, signal: Signal) -> ClusterResult {
        if let Some(takes) = self.signals_take {
            let mut signals = self.signals.lock().unwrap();
            signals.insert(node.clone(), (signal, Instant::now() + takes));
        }
        Ok(())
    }

    async fn threads(&self, node: &Name) -> ClusterResult<Vec<ThreadState>> {
        let mut looks = self.looks.lock().unwrap();
        let last = looks.back().filter(|_| looks.len() == 1).cloned();
        if let Some(look) = last.or_else(|| looks.pop_front()) {
            return look.map_err(|reason| ClusterError::failed("see the threads", reason));
        }
        Ok(match self.effect(node) {
            Some(Signal::Stop) => vec![ThreadState('T')],
            Some(Signal::Kill) => Vec::new(),
            Some(Signal::Continue) | None => vec![ThreadState('S')],
        })
    }

    async fn await_end(&self, _: &Name) -> ClusterResult {
        tokio::time::sleep(self.signals_take.unwrap_or_default()).await;
        Ok(())
    }

    async fn state(&self, node: &Name) -> ClusterResult<NodeState> {
        let is_killed = self.effect(node) == Some(Signal::Kill);
        Ok(NodeState {
            running: !is_killed,
            exit_code: is_killed.then_some(137),
            ..NodeState::default()
        })
    }

    async fn create_node(&self, _: &NodeSpec) -> ClusterResult {
        unreachable!("nobody creates services here")
    }

    async fn start(&self, _: &NodeSpec) -> ClusterResult {
        unreachable!("nobody starts services here")
    }

    async fn await_said(&self, _: &Name, _: &str) -> ClusterResult {
        unreachable!("nobody starts services here")
    }

    async fn address(&self, _: &Name, _: u16) -> ClusterResult<SocketAddr> {
        unreachable!("nobody connects to services here")
    }

    async fn logs(&self, _: &Name) -> ClusterResult<String> {
        unreachable!("nobody reads logs here")
    }

    async fn remove(&self) -> ClusterResult {
        unreachable!("nobody removes anything here")
    }
}
