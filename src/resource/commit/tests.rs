use super::super::state::{Answer, State, WriteReply, WriteRequest};
use super::super::storage::Folder;
use super::*;
use crate::model::{Fence, FencingToken, LogRow};
use bytes::Bytes;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;
use tokio::sync::oneshot::error::TryRecvError;

fn write(token: u64) -> (Command<State>, oneshot::Receiver<WriteReply>) {
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

fn run_all(log: Log, queued: Vec<Command<State>>, metrics: &Metrics) -> Result<Sound, LogError> {
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
    let log = Log::open(dir.path(), |_: LogRow| ()).unwrap();
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
    let log = Log::open(dir.path(), |_: LogRow| ()).unwrap();
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
    let log = Log::open(dir.path(), |_: LogRow| ()).unwrap();
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
