//! Group commit: one thread owns the state and the log, so there is one order,
//! and everybody who waits shares one fdatasync.
//!
//! Nothing is answered before the sync, reads included: what a read shows is
//! on disk. After a failed sync nothing is answered at all.

use super::ResourceError;
use super::limits::{COMMIT_DEADLINE, MAX_BATCH_COMMANDS, QUEUE_COMMANDS};
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
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// The way to the commit thread, for any number of requests.
#[derive(Clone)]
pub(super) struct Committer {
    commands: mpsc::Sender<Command>,
    durable: watch::Receiver<Sound>,
}

/// No answer came, so the outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// The thread is gone: the resource stops, or its disk failed.
    Gone,
    TooSlow,
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
    pub async fn write(&self, request: WriteRequest) -> Result<WriteReply, Unanswered> {
        self.ask(|reply| Command::Write(request, reply)).await
    }

    /// For [`Mutant::LoseKey`]. Where the thread is gone, nobody reads values either.
    #[cfg(debug_assertions)]
    pub fn log_was_read(&self) {
        let _ = self.commands.try_send(Command::LogWasRead);
    }

    pub async fn get(&self, key: String) -> Result<Option<Stored>, Unanswered> {
        self.ask(|reply| Command::Get(key, reply)).await
    }

    /// Whatever was asked before is still answered.
    pub async fn stop(&self) {
        // A thread that is gone already has stopped.
        let _ = self.commands.send(Command::Stop).await;
    }

    /// How much of the log is on disk; changes with every batch.
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

/// Whoever started the thread learns from this how it ended.
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
                // The log is closed when this returns, so a successor may open it.
                let result = run(log, state, received, durable_tx, &metrics);
                let _ = ended_tx.send(result);
            })?;
        Ok((Committer { commands, durable }, CommitThread { ended }))
    }

    pub async fn finished(&mut self) -> Result<(), ResourceError> {
        match (&mut self.ended).await {
            Ok(result) => result.map_err(ResourceError::Log),
            Err(_) => Err(ResourceError::ThreadDied),
        }
    }
}

fn run(
    mut log: Log,
    mut state: State,
    mut commands: mpsc::Receiver<Command>,
    durable: watch::Sender<Sound>,
    metrics: &Metrics,
) -> Result<(), LogError> {
    let mut batch = Batch::default();
    let mut pending = Vec::new();
    let mut stopping = false;
    while !stopping && let Some(mut command) = commands.blocking_recv() {
        loop {
            match command {
                Command::Write(request, reply) => {
                    let answer = state.decide(request, raw_monotonic_ns()).map(|decision| {
                        batch.push(&decision.row);
                        metrics.count(decision.row.outcome);
                        decision.answer
                    });
                    pending.push(Pending::Write(answer, reply));
                }
                Command::Get(key, reply) => pending.push(Pending::Get(state.get(&key), reply)),
                #[cfg(debug_assertions)]
                Command::LogWasRead => state.log_was_read(),
                Command::Stop => stopping = true,
            }
            if stopping || !batch.has_room() || pending.len() >= MAX_BATCH_COMMANDS {
                break;
            }
            match commands.try_recv() {
                Ok(next) => command = next,
                Err(_) => break,
            }
        }
        if !batch.is_empty() {
            let started = Instant::now();
            log.write(&batch)?;
            #[cfg(debug_assertions)]
            if state.mutant() == Some(Mutant::AnswerBeforeSync) {
                pending.drain(..).for_each(Pending::answer);
            }
            log.sync(&batch)?;
            metrics.count_batch(started.elapsed());
            durable.send_replace(log.durable());
            batch.clear();
        }
        pending.drain(..).for_each(Pending::answer);
    }
    log.close()
}

impl Pending {
    fn answer(self) {
        // Whoever asked may have gone away; what it asked for is done all the same.
        match self {
            Pending::Write(answer, reply) => drop(reply.send(answer)),
            Pending::Get(stored, reply) => drop(reply.send(stored)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fence, FencingToken, LogRow};
    use bytes::Bytes;
    use std::fs::File;
    use std::os::fd::OwnedFd;
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
        // A pipe takes the bytes and then refuses to sync them.
        let (_reader, pipe) = io::pipe().unwrap();
        let log = Log::over(File::from(OwnedFd::from(pipe)));
        let (first, mut write_answer) = write(1);
        let (reply, mut read_answer) = oneshot::channel();
        let queued = vec![first, Command::Get("k".into(), reply)];
        let error = run_all(log, queued, &Metrics::new(Fence::On)).unwrap_err();
        assert!(error.to_string().starts_with("cannot sync "), "{error}");
        assert_eq!(write_answer.try_recv(), Err(TryRecvError::Closed));
        assert_eq!(read_answer.try_recv(), Err(TryRecvError::Closed));
    }
}
