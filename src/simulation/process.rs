use super::clocks::Clocks;
use super::network::Network;
use crate::clock::{ClockState, ClocksAhead, Deed, as_process, raw_monotonic_ns, wall_clock_ns};
use crate::model::Name;
use async_trait::async_trait;
use fencing_lock::{ByteStream, World};
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

/// A process: tasks that run, stand still and end together.
pub struct Process {
    node: Name,
    /// How many processes the node has had, with this one.
    start: u32,
    network: Arc<Network>,
    random: Mutex<fastrand::Rng>,
    clocks: Mutex<Clocks>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_stopped: bool,
    is_frozen: bool,
    /// It stands still by itself.
    stands_still: bool,
    exit_code: Option<i64>,
    last_task: u64,
    /// The wakers of its tasks, by their numbers.
    tasks: BTreeMap<u64, Waker>,
}

impl Process {
    /// Makes a process of a node. `start` tells it from those that the node had before.
    pub fn new(node: &Name, seed: u64, start: u32, network: &Arc<Network>) -> Arc<Process> {
        // Nobody may draw the same numbers as another process.
        let hash = Sha256::digest(format!("{seed} {node} {start}"));
        let own_seed = hash
            .iter()
            .take(8)
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Arc::new(Process {
            node: node.clone(),
            start,
            network: network.clone(),
            random: Mutex::new(fastrand::Rng::with_seed(own_seed)),
            clocks: Mutex::default(),
            state: Mutex::default(),
        })
    }

    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Returns whether the node never had another one.
    pub fn is_first(&self) -> bool {
        self.start <= 1
    }

    pub fn random(&self) -> u64 {
        self.random.lock().u64(..)
    }

    /// Makes a task of this process, which the caller has to spawn.
    pub fn task(
        self: &Arc<Process>,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> ProcessTask {
        let mut state = self.state.lock();
        state.last_task += 1;
        ProcessTask {
            process: self.clone(),
            number: state.last_task,
            work: Some(Box::pin(work)),
        }
    }

    pub fn stop(&self) {
        self.state.lock().is_stopped = true;
    }

    pub fn go_on(&self) {
        self.change(|state| state.is_stopped = false);
    }

    pub fn freeze(&self, is_frozen: bool) {
        self.change(|state| state.is_frozen = is_frozen);
    }

    /// Ends the process; nothing of it is done any more.
    pub fn end(&self, exit_code: i64) {
        self.change(|state| {
            state.exit_code.get_or_insert(exit_code);
        });
    }

    pub fn is_stopped(&self) -> bool {
        self.state.lock().is_stopped
    }

    pub fn is_frozen(&self) -> bool {
        self.state.lock().is_frozen
    }

    pub fn exit_code(&self) -> Option<i64> {
        self.state.lock().exit_code
    }

    /// Reads its wall clock, as the time since 1970.
    pub fn wall_clock(&self) -> Duration {
        let ns = wall_clock_ns() + self.ahead().realtime_ns;
        Duration::from_nanos(ns.unsigned_abs())
    }

    /// Reads its monotonic clock.
    pub fn monotonic(&self) -> Duration {
        let ns = raw_monotonic_ns() as i64 + self.ahead().monotonic_ns;
        Duration::from_nanos(ns.unsigned_abs())
    }

    /// Changes its clocks; returns how wrong they are then.
    pub fn change_clocks(&self, deed: &Deed) -> ClockState {
        let changed = self.clocks.lock().change(deed, raw_monotonic_ns());
        // Whoever waits for a time looks at the clock again.
        self.change(|_| {});
        changed
    }

    fn ahead(&self) -> ClocksAhead {
        self.clocks.lock().ahead(raw_monotonic_ns)
    }

    fn stand_still(self: &Arc<Process>, length: Duration) {
        self.state.lock().stands_still = true;
        let process = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(length).await;
            process.change(|state| state.stands_still = false);
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        for waker in state.tasks.values() {
            waker.wake_by_ref();
        }
    }
}

/// A task that is polled only while its process runs, and dropped when it ends.
pub struct ProcessTask {
    process: Arc<Process>,
    number: u64,
    work: Option<BoxFuture<'static, ()>>,
}

impl Future for ProcessTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let (is_over, stands_still) = {
            let mut state = self.process.state.lock();
            let waker = state.tasks.get(&self.number);
            if waker.is_none_or(|waker| !waker.will_wake(context.waker())) {
                state.tasks.insert(self.number, context.waker().clone());
            }
            let stands_still = state.is_stopped || state.is_frozen || state.stands_still;
            (state.exit_code.is_some(), stands_still)
        };
        let ahead = self.process.ahead();
        let Some(work) = &mut self.work else {
            return Poll::Ready(());
        };
        if !is_over {
            if stands_still {
                return Poll::Pending;
            }
            let (polled, standstill) = as_process(ahead, || work.as_mut().poll(context));
            if let Some(length) = standstill {
                self.process.stand_still(length);
            }
            if polled.is_pending() {
                return Poll::Pending;
            }
        }
        self.work = None;
        Poll::Ready(())
    }
}

impl Drop for ProcessTask {
    fn drop(&mut self) {
        self.process.state.lock().tasks.remove(&self.number);
    }
}

/// The surroundings of the lock clients in a process.
pub struct Surroundings(pub Arc<Process>);

#[async_trait]
impl World for Surroundings {
    fn wall_clock(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.0.wall_clock()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(self.0.task(task));
    }

    async fn dial(&self, host: &str, port: u16) -> io::Result<Box<dyn ByteStream>> {
        let Process { node, network, .. } = &*self.0;
        Ok(Box::new(network.dial(node, host, port).await?))
    }
}
