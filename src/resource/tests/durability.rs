use super::super::storage::{FILE_NAME, Folder};
use super::*;
use crate::model::RowValue;
use futures_util::StreamExt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::mpsc;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::timeout;

#[tokio::test]
async fn a_restart_keeps_values_and_fences() {
    let (dir, server) = Server::fresh(Fence::On).await;
    server.put(5, 1, "kept").await;
    server.put(3, 0, "stale").await;
    let before = server.value().await;
    server.stop().await;

    let server = Server::start(Fence::On, dir.path()).await;
    assert_eq!(server.value().await, before);
    let rejected = WriteAnswer::Rejected {
        seen: FencingToken(5),
        got: FencingToken(4),
    };
    assert_eq!(server.put(4, 0, "stale").await, rejected);
    let repeated = WriteAnswer::Accepted { position: 1 };
    assert_eq!(server.put(5, 1, "kept").await, repeated);
    let stored = server.value().await.unwrap();
    assert_eq!(stored.value, RowValue::Text("kept".into()));
    let next = WriteAnswer::Accepted { position: 5 };
    assert_eq!(server.put(6, 0, "new").await, next);
    let rows = server.client.log().await.unwrap();
    assert!(rows.iter().map(|row| row.seq).eq(1..=5));
    server.stop().await;
}

#[tokio::test]
async fn a_torn_end_is_cut_and_the_resource_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let server = Server::start(Fence::On, dir.path()).await;
    server.put(5, 0, "kept").await;
    server.stop().await;
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(br#"{"seq":2,"at_ns":1,"key":"k","outcome":"acc"#)
        .unwrap();

    let server = Server::start(Fence::On, dir.path()).await;
    assert_eq!(
        server.put(6, 0, "next").await,
        WriteAnswer::Accepted { position: 2 }
    );
    assert_eq!(server.client.log().await.unwrap().len(), 2);
    server.stop().await;
}

#[tokio::test]
async fn a_log_damaged_in_the_middle_is_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let server = Server::start(Fence::On, dir.path()).await;
    for token in 1..=3 {
        server.put(token, 0, "v").await;
    }
    server.stop().await;
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"seq\":2", "\"seq\":7")).unwrap();

    let server = Server::start(Fence::On, dir.path()).await;
    let error = server.task.await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("log.jsonl:2: row 2 should be here, not 7"),
        "{error}"
    );
}

#[tokio::test]
async fn a_failed_disk_ends_the_resource_without_an_answer() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let (_reader, pipe) = io::pipe().unwrap();
    let pipe = File::from(OwnedFd::from(pipe));
    for (file, problem) in [(full, "cannot write to"), (pipe, "cannot sync")] {
        let log = Log::over(Folder::over(file, Path::new("log-of-a-test")));
        let server = Server::over(log).await;
        let error = server.client.put(&attempt(1, 0, "v")).await.unwrap_err();
        assert!(error.outcome_unknown(), "{error}");
        let error = server.task.await.unwrap().unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
}

#[tokio::test]
async fn nothing_is_answered_before_the_sync() {
    let write = WriteToSlowDisk::begin(State::new(Fence::On)).await;
    // A later request has been answered, and the write has not.
    let later = reqwest::get(format!("{}/healthz", write.server.url)).await;
    assert!(later.unwrap().status().is_success());
    let early = write.answer.is_finished();
    assert!(!early, "answered while its sync is held back");
    write.disk_goes_on.send(()).unwrap();
    let answer = timeout(PATIENCE, write.answer).await.expect("an answer");
    assert_eq!(answer.unwrap(), WriteAnswer::Accepted { position: 1 });
}

#[tokio::test]
async fn a_write_that_is_acknowledged_during_the_stop_is_sent_to_those_who_follow() {
    let write = WriteToSlowDisk::begin(State::new(Fence::On)).await;
    let mut rows = pin!(write.server.client.follow().await.unwrap());
    let asked = reqwest::get(format!("{}/healthz", write.server.url)).await;
    assert!(asked.unwrap().status().is_success());
    let address = write.server.address().to_owned();
    write.server.stop.send(()).unwrap();
    // The port is closed, so the stop is under way.
    let refused = async { while TcpStream::connect(&address).await.is_ok() {} };
    timeout(PATIENCE, refused).await.expect("a closed port");
    write.disk_goes_on.send(()).unwrap();
    let row = timeout(PATIENCE, rows.next()).await.expect("a row");
    assert_eq!(row.expect("a row").unwrap().seq, 1);
    let answer = timeout(PATIENCE, write.answer).await.expect("an answer");
    assert_eq!(answer.unwrap(), WriteAnswer::Accepted { position: 1 });
    assert!(rows.next().await.is_none());
    let ended = timeout(PATIENCE, write.server.task).await;
    ended.expect("it ends").unwrap().unwrap();
}

const PATIENCE: Duration = Duration::from_secs(10);

/// A write that is in the file, and whose sync is delayed.
pub(super) struct WriteToSlowDisk {
    pub(super) answer: JoinHandle<WriteAnswer>,
    pub(super) disk_goes_on: mpsc::Sender<()>,
    server: Server,
    _dir: TempDir,
}

impl WriteToSlowDisk {
    pub(super) async fn begin(state: State) -> WriteToSlowDisk {
        let (syncing, mut synced) = tokio::sync::mpsc::unbounded_channel();
        let (disk_goes_on, told) = mpsc::channel();
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), |_: crate::model::LogRow| ())
            .unwrap()
            .held_back_by(move || {
                syncing.send(()).unwrap();
                told.recv_timeout(PATIENCE).unwrap();
            });
        let server = Server::of(log, state).await;
        let client = server.client.clone();
        let write = async move { client.put(&attempt(1, 0, "v")).await.unwrap() };
        let answer = tokio::spawn(write);
        let reached = timeout(PATIENCE, synced.recv()).await;
        reached.expect("a sync").unwrap();
        WriteToSlowDisk {
            answer,
            disk_goes_on,
            server,
            _dir: dir,
        }
    }
}

#[tokio::test]
async fn followers_of_a_failed_disk_are_let_go() {
    let dir = tempfile::tempdir().unwrap();
    let readable = dir.path().join("log");
    File::create(&readable).unwrap();
    // It is opened only for reading, so every write to it fails.
    let file = File::open(&readable).unwrap();
    let log = Log::over(Folder::over(file, &readable));
    let server = Server::over(log).await;
    let mut rows = pin!(server.client.follow().await.unwrap());
    let write = server.client.put(&attempt(1, 0, "v")).await;
    assert!(write.unwrap_err().outcome_unknown());
    assert!(rows.next().await.is_none());
    assert!(server.task.await.unwrap().is_err());
}
