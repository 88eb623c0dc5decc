//! Group commit: one thread owns the state and the log, so there is one order, and all waiting
//! requests share one fdatasync.
//!
//! Nothing is answered before the sync, not even reads, so a read shows only what is on disk.
//! After a failed sync nothing is answered at all.

use super::ResourceError;
use super::limits::{COMMIT_DEADLINE, MAX_BATCH_COMMANDS, MAX_WRITES, QUEUE_COMMANDS};
use super::log::{Batch, Log, LogError};
use super::metrics::Metrics;
use super::recover::Sound;
use super::row_line::Row;
use crate::clock::raw_monotonic_ns;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// A state that is changed in one order, by rows that can be replayed.
pub(super) trait Ledger: Send + 'static {
    type Row: Row;
    type Write: Send;
    type Reply: Send;
    type Question: Send;
    type Found: Send;

    /// Decides on a write. The reply is sent once the row is on disk; without a row, nothing
    /// has changed.
    fn decide(&mut self, write: Self::Write, at_ns: u64) -> (Option<Self::Row>, Self::Reply);

    fn look(&self, question: Self::Question) -> Self::Found;

    /// Returns whether a deliberate defect answers writes before they are on disk.
    #[cfg(debug_assertions)]
    fn answers_before_sync(&self) -> bool {
        false
    }

    /// Serves a deliberate defect: a client has read the whole log.
    #[cfg(debug_assertions)]
    fn log_was_read(&mut self) {}
}

/// The connection to the commit thread, for any number of requests.
pub(super) struct Committer<L: Ledger> {
    commands: mpsc::Sender<Command<L>>,
    durable: watch::Receiver<Sound>,
    /// One for each write whose body may be in memory.
    places: Arc<Semaphore>,
    under_way: TaskTracker,
}

/// The reason why there is no answer, so that the outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The thread is gone: the resource is stopping, or its disk failed.
    Gone,
    TooSlow,
    /// Too many writes are under way, so this one was not begun.
    NoPlace,
}

impl<L: Ledger> Clone for Committer<L> {
    fn clone(&self) -> Committer<L> {
        Committer {
            commands: self.commands.clone(),
            durable: self.durable.clone(),
            places: self.places.clone(),
            under_way: self.under_way.clone(),
        }
    }
}

enum Command<L: Ledger> {
    Write(L::Write, oneshot::Sender<L::Reply>),
    Get(L::Question, oneshot::Sender<L::Found>),
    #[cfg(debug_assertions)]
    LogWasRead,
    Stop,
}

/// An answer that waits for the sync.
enum Pending<L: Ledger> {
    Write(L::Reply, oneshot::Sender<L::Reply>),
    Get(L::Found, oneshot::Sender<L::Found>),
}

impl<L: Ledger> Committer<L> {
    /// Announces a request. A stop waits until this is dropped.
    pub fn announce(&self) -> TaskTrackerToken {
        self.under_way.token()
    }

    /// Waits for a place among the writes; its body is read only then.
    pub async fn place(&self) -> Result<OwnedSemaphorePermit, Unanswered> {
        let place = self.places.clone().acquire_owned();
        match timeout(COMMIT_DEADLINE, place).await {
            Ok(place) => place.map_err(|_| Unanswered::Gone),
            Err(_) => Err(Unanswered::NoPlace),
        }
    }

    pub async fn write(&self, request: L::Write) -> Result<L::Reply, Unanswered> {
        self.ask(|reply| Command::Write(request, reply)).await
    }

    /// Serves a deliberate defect. If the thread is gone, nobody reads values either.
    #[cfg(debug_assertions)]
    pub fn log_was_read(&self) {
        let _ = self.commands.try_send(Command::LogWasRead);
    }

    pub async fn get(&self, question: L::Question) -> Result<L::Found, Unanswered> {
        self.ask(|reply| Command::Get(question, reply)).await
    }

    /// Returns when no request is announced any more.
    pub async fn settled(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    /// Stops the thread. Earlier requests are still answered.
    pub async fn stop(&self) {
        // If the thread is gone, it has already stopped.
        let _ = self.commands.send(Command::Stop).await;
    }

    /// Returns how much of the log is on disk; it changes with every batch, and is closed when
    /// the thread has ended.
    pub fn durable(&self) -> watch::Receiver<Sound> {
        self.durable.clone()
    }

    async fn ask<T>(
        &self,
        command: impl FnOnce(oneshot::Sender<T>) -> Command<L>,
    ) -> Result<T, Unanswered> {
        let (reply, answer) = oneshot::channel();
        let asked = async {
            let sent = self.commands.send(command(reply)).await;
            sent.map_err(|_| Unanswered::Gone)?;
            answer.await.map_err(|_| Unanswered::Gone)
        };
        timeout(COMMIT_DEADLINE, asked)
            .await
            .unwrap_or(Err(Unanswered::TooSlow))
    }
}

/// The end of the commit thread, for the code that started it.
pub(super) struct CommitThread {
    ended: oneshot::Receiver<Result<(), LogError>>,
}

impl CommitThread {
    pub fn start<L: Ledger>(
        log: Log,
        state: L,
        metrics: Arc<Metrics>,
    ) -> io::Result<(Committer<L>, CommitThread)> {
        let (commands, received) = mpsc::channel(QUEUE_COMMANDS);
        let (durable_tx, durable) = watch::channel(log.durable());
        let (ended_tx, ended) = oneshot::channel();
        thread::Builder::new()
            .name("resource-commit".into())
            .spawn(move || {
                // The log is closed when this returns, so that a successor can open it.
                let result = run(log, state, received, durable_tx, &metrics);
                let _ = ended_tx.send(result);
            })?;
        let committer = Committer {
            commands,
            durable,
            places: Arc::new(Semaphore::new(MAX_WRITES)),
            under_way: TaskTracker::new(),
        };
        Ok((committer, CommitThread { ended }))
    }

    pub async fn finished(&mut self) -> Result<(), ResourceError> {
        match (&mut self.ended).await {
            Ok(result) => result.map_err(ResourceError::Log),
            Err(_) => Err(ResourceError::ThreadDied),
        }
    }
}

fn run<L: Ledger>(
    log: Log,
    state: L,
    mut commands: mpsc::Receiver<Command<L>>,
    durable: watch::Sender<Sound>,
    metrics: &Metrics,
) -> Result<(), LogError> {
    let mut group = GroupCommit::new(log, state, durable, metrics);
    while !group.is_stopping
        && let Some(command) = commands.blocking_recv()
    {
        group.turn(command, || commands.try_recv().ok())?;
    }
    group.log.close()
}

/// The state, its log, and the batch that is being made.
struct GroupCommit<'a, L: Ledger> {
    log: Log,
    state: L,
    durable: watch::Sender<Sound>,
    metrics: &'a Metrics,
    batch: Batch,
    pending: Vec<Pending<L>>,
    is_stopping: bool,
}

impl<L: Ledger> GroupCommit<'_, L> {
    fn new(
        log: Log,
        state: L,
        durable: watch::Sender<Sound>,
        metrics: &Metrics,
    ) -> GroupCommit<'_, L> {
        GroupCommit {
            log,
            state,
            durable,
            metrics,
            batch: Batch::default(),
            pending: Vec::new(),
            is_stopping: false,
        }
    }

    /// Decides on a command and on those that wait behind it, and answers all of them once
    /// they are on disk.
    fn turn(
        &mut self,
        first: Command<L>,
        mut waiting: impl FnMut() -> Option<Command<L>>,
    ) -> Result<(), LogError> {
        let mut next = Some(first);
        while let Some(command) = next {
            self.decide(command);
            let is_full = !self.batch.has_room() || self.pending.len() >= MAX_BATCH_COMMANDS;
            next = match self.is_stopping || is_full {
                true => None,
                false => waiting(),
            };
        }
        if !self.batch.is_empty() {
            self.commit()?;
        }
        self.answer();
        Ok(())
    }

    fn decide(&mut self, command: Command<L>) {
        match command {
            Command::Write(request, reply) => {
                let (row, answer) = self.state.decide(request, raw_monotonic_ns());
                if let Some(row) = row {
                    self.batch.push(&row);
                    self.metrics.count(row.outcome());
                }
                self.pending.push(Pending::Write(answer, reply));
            }
            Command::Get(question, reply) => {
                let found = self.state.look(question);
                self.pending.push(Pending::Get(found, reply));
            }
            #[cfg(debug_assertions)]
            Command::LogWasRead => self.state.log_was_read(),
            Command::Stop => self.is_stopping = true,
        }
    }

    fn commit(&mut self) -> Result<(), LogError> {
        let started = Instant::now();
        self.log.write(&self.batch)?;
        #[cfg(debug_assertions)]
        if self.state.answers_before_sync() {
            self.answer();
        }
        self.log.sync(&self.batch)?;
        self.metrics.count_batch(started.elapsed());
        self.durable.send_replace(self.log.durable());
        self.batch.clear();
        Ok(())
    }

    fn answer(&mut self) {
        self.pending.drain(..).for_each(Pending::answer);
    }
}

impl<L: Ledger> Pending<L> {
    fn answer(self) {
        // The client may have gone away; its request is done anyway.
        match self {
            Pending::Write(answer, reply) => drop(reply.send(answer)),
            Pending::Get(found, reply) => drop(reply.send(found)),
        }
    }
}

#[cfg(test)]
mod campaign;

#[cfg(test)]
mod tests;
