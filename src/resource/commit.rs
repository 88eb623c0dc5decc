//! Group commit: one thread owns the state and the log, so there is one order, and all waiting
//! requests share one fdatasync.
//!
//! Nothing is answered before the sync, not even reads, so a read shows only what is on disk.
//! After a failed sync nothing is answered at all.

use super::ResourceError;
use super::limits::{COMMIT_DEADLINE, MAX_BATCH_COMMANDS, MAX_WRITES, QUEUE_COMMANDS};
use super::log::{Batch, Log, LogError};
use super::metrics::Metrics;
#[cfg(debug_assertions)]
use super::mutant::Mutant;
use super::recover::Sound;
use super::state::{Answer, State, Stored, Undecided, WriteRequest};
use crate::clock::raw_monotonic_ns;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::timeout;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The connection to the commit thread, for any number of requests.
#[derive(Clone)]
pub(super) struct Committer {
    commands: mpsc::Sender<Command>,
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

type WriteReply = Result<Answer, Undecided>;

enum Command {
    Write(WriteRequest, oneshot::Sender<WriteReply>),
    Get(String, oneshot::Sender<Option<Stored>>),
    #[cfg(debug_assertions)]
    LogWasRead,
    Stop,
}

/// An answer that waits for the sync.
enum Pending {
    Write(WriteReply, oneshot::Sender<WriteReply>),
    Get(Option<Stored>, oneshot::Sender<Option<Stored>>),
}

impl Committer {
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

    pub async fn write(&self, request: WriteRequest) -> Result<WriteReply, Unanswered> {
        self.ask(|reply| Command::Write(request, reply)).await
    }

    /// Serves [`Mutant::LoseKey`]. If the thread is gone, nobody reads values either.
    #[cfg(debug_assertions)]
    pub fn log_was_read(&self) {
        let _ = self.commands.try_send(Command::LogWasRead);
    }

    pub async fn get(&self, key: String) -> Result<Option<Stored>, Unanswered> {
        self.ask(|reply| Command::Get(key, reply)).await
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
        command: impl FnOnce(oneshot::Sender<T>) -> Command,
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
    pub fn start(
        log: Log,
        state: State,
        metrics: Arc<Metrics>,
    ) -> io::Result<(Committer, CommitThread)> {
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

fn run(
    log: Log,
    state: State,
    mut commands: mpsc::Receiver<Command>,
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
struct GroupCommit<'a> {
    log: Log,
    state: State,
    durable: watch::Sender<Sound>,
    metrics: &'a Metrics,
    batch: Batch,
    pending: Vec<Pending>,
    is_stopping: bool,
}

impl GroupCommit<'_> {
    fn new(
        log: Log,
        state: State,
        durable: watch::Sender<Sound>,
        metrics: &Metrics,
    ) -> GroupCommit<'_> {
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
        first: Command,
        mut waiting: impl FnMut() -> Option<Command>,
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

    fn decide(&mut self, command: Command) {
        match command {
            Command::Write(request, reply) => {
                let decided = self.state.decide(request, raw_monotonic_ns());
                let answer = decided.map(|decision| {
                    self.batch.push(&decision.row);
                    self.metrics.count(decision.row.outcome);
                    decision.answer
                });
                self.pending.push(Pending::Write(answer, reply));
            }
            Command::Get(key, reply) => {
                let stored = self.state.get(&key);
                self.pending.push(Pending::Get(stored, reply));
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
        if self.state.mutant() == Some(Mutant::AnswerBeforeSync) {
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

impl Pending {
    fn answer(self) {
        // The client may have gone away; its request is done anyway.
        match self {
            Pending::Write(answer, reply) => drop(reply.send(answer)),
            Pending::Get(stored, reply) => drop(reply.send(stored)),
        }
    }
}

#[cfg(test)]
mod campaign;

#[cfg(test)]
mod tests {
    use super::super::storage::Folder;
    use super::*;
    use crate::model::{Fence, FencingToken, LogRow};
    use bytes::Bytes;
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::path::Path;
    use tokio::sync::oneshot::error::TryRecvError;

    fn write(token: u64) -> (Command, oneshot::Receiver<WriteReply>) {
        let (reply, answer) = oneshot::channel();
        let request = WriteRequest {
            key: "k".into(),
            token: Some(FencingToken(token)),
            token_seq: 0,
            owner: None,
            based_on: None,
            body: Bytes::from_static(b"v"),
        };
        (Command::Write(request, reply), answer)
    }

    fn run_all(log: Log, queued: Vec<Command>, metrics: &Metrics) -> Result<Sound, LogError> {
        let (commands, received) = mpsc::channel(QUEUE_COMMANDS);
        for command in queued {
            assert!(commands.try_send(command).is_ok());
        }
        drop(commands);
        let (durable, seen) = watch::channel(log.durable());
        run(log, State::new(Fence::On), received, durable, metrics)?;
        Ok(*seen.borrow())
    }

    #[test]
    fn whoever_waits_shares_one_sync() {
        let dir = tempfile::tempdir().unwrap();
        let metrics = Metrics::new(Fence::On);
        let (queued, answers): (Vec<_>, Vec<_>) = (1..=200).map(write).unzip();
        let log = Log::open(dir.path(), |_| ()).unwrap();
        assert_eq!(run_all(log, queued, &metrics).unwrap().rows, 200);
        for (mut answer, token) in answers.into_iter().zip(1..) {
            let accepted = Answer::Accepted {
                position: token,
                max_fence: Some(FencingToken(token)),
            };
            assert_eq!(answer.try_recv().unwrap(), Ok(accepted));
        }
        let text = metrics.encode().unwrap();
        assert!(text.contains("resource_commit_batches_total 1\n"), "{text}");
        let mut rows: Vec<LogRow> = Vec::new();
        Log::open(dir.path(), |row| rows.push(row)).unwrap();
        assert!(rows.is_sorted_by(|a, b| a.seq + 1 == b.seq && a.at_ns <= b.at_ns));
    }

    #[test]
    fn a_batch_of_reads_is_not_synced() {
        let dir = tempfile::tempdir().unwrap();
        let metrics = Metrics::new(Fence::On);
        let (reply, mut answer) = oneshot::channel();
        let log = Log::open(dir.path(), |_| ()).unwrap();
        run_all(log, vec![Command::Get("k".into(), reply)], &metrics).unwrap();
        assert_eq!(answer.try_recv().unwrap(), None);
        let text = metrics.encode().unwrap();
        assert!(text.contains("resource_commit_batches_total 0\n"), "{text}");
    }

    #[test]
    fn what_is_asked_before_a_stop_is_answered_and_after_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let metrics = Metrics::new(Fence::On);
        let (first, mut answered) = write(1);
        let (second, mut unanswered) = write(2);
        let log = Log::open(dir.path(), |_| ()).unwrap();
        run_all(log, vec![first, Command::Stop, second], &metrics).unwrap();
        assert!(answered.try_recv().is_ok());
        assert_eq!(unanswered.try_recv(), Err(TryRecvError::Closed));
    }

    #[test]
    fn after_a_failed_sync_neither_writes_nor_reads_are_answered() {
        // A pipe accepts the bytes and then fails to sync them.
        let (_reader, pipe) = io::pipe().unwrap();
        let pipe = File::from(OwnedFd::from(pipe));
        let log = Log::over(Folder::over(pipe, Path::new("pipe")));
        let (first, mut write_answer) = write(1);
        let (reply, mut read_answer) = oneshot::channel();
        let queued = vec![first, Command::Get("k".into(), reply)];
        let error = run_all(log, queued, &Metrics::new(Fence::On)).unwrap_err();
        assert!(error.to_string().starts_with("cannot sync "), "{error}");
        assert_eq!(write_answer.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(read_answer.try_recv(), Err(TryRecvError::Closed));
    }
}
