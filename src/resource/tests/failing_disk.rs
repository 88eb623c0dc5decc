//! The resource on a real disk whose sync fails.

use super::super::storage::model::{Disk, Fault, ModelStorage};
use super::super::storage::{Folder, Storage};
use super::loop_disk::{LoopDisk, with_loop_disk};
use super::*;
use crate::model::RowValue;

/// A batch that needs new blocks.
fn long(token: u64) -> WriteRequest {
    WriteRequest {
        body: Bytes::from(vec![b'a' + (token % 26) as u8; 20_000]),
        ..attempt(token, 0, "")
    }
}

#[test]
fn what_was_shown_or_acknowledged_after_a_failed_sync_survives_a_power_failure() {
    with_loop_disk("failing_disk", |disk| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(sync_fails_and_power_fails(&disk));
    });
}

/// Starts a resource, and shows the error if it does not.
async fn start(disk: &LoopDisk) -> Server {
    let mut server = Server::start(Fence::On, &disk.path()).await;
    let health = server.raw(Method::GET, "/healthz").send();
    tokio::select! {
        ended = &mut server.task => panic!("{:?}", ended.unwrap().map_err(|e| e.to_string())),
        answer = health => drop(answer.unwrap()),
    }
    server
}

async fn sync_fails_and_power_fails(disk: &LoopDisk) {
    let server = start(disk).await;
    for token in 1..=3 {
        server.put(token, 0, "short").await;
    }
    disk.fill();
    let unanswered = server.client.put(&long(9)).await.unwrap_err();
    assert!(unanswered.outcome_unknown(), "{unanswered}");
    let error = server.task.await.unwrap().unwrap_err().to_string();
    assert!(error.starts_with("cannot sync "), "{error}");
    disk.free();

    let server = start(disk).await;
    let shown = server.value().await.unwrap();
    let accepted = server.client.put(&long(10)).await.unwrap();
    assert!(matches!(accepted, WriteAnswer::Accepted { .. }));
    let acknowledged = server.client.log().await.unwrap();
    disk.lose_power();
    server.task.abort();

    let server = start(disk).await;
    let stored = server.value().await.unwrap();
    assert_eq!(stored.max_fence, Some(FencingToken(10)));
    assert_eq!(stored.value, RowValue::from_bytes(&long(10).body));
    let rows = server.client.log().await.unwrap();
    assert_eq!(rows, acknowledged);
    assert!(rows.iter().any(|row| row.seq == shown.position));
    server.stop().await;
}

/// What to do about a sync that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Remedy {
    GoOn,
    Copy,
}

const BEFORE: &[u8] = &[b'a'; 3_001];
const FAILED: &[u8] = &[b'b'; 20_001];
const AFTER: &[u8] = &[b'c'; 5_001];

/// Appends to a disk that fails between `fail` and `mend`.
fn append(storage: &mut dyn Storage, remedy: Remedy, fail: impl FnOnce(), mend: impl FnOnce()) {
    storage.copy(0, &mut |_| ()).unwrap();
    storage.adopt().unwrap();
    storage.append(BEFORE).unwrap();
    storage.sync().unwrap();
    fail();
    storage.append(FAILED).unwrap();
    assert!(storage.sync().is_err(), "the disk fails");
    mend();
    assert_eq!(content(storage), [BEFORE, FAILED].concat(), "it is shown");
    if remedy == Remedy::Copy {
        let shown = storage.length().unwrap();
        storage.copy(shown, &mut |_| ()).unwrap();
        storage.adopt().unwrap();
    }
    storage.sync().expect("the second sync succeeds");
    storage.append(AFTER).unwrap();
    storage.sync().unwrap();
}

fn content(storage: &dyn Storage) -> Vec<u8> {
    let mut content = vec![0; storage.length().unwrap() as usize];
    let read = storage.read_at(0, &mut content).unwrap();
    assert_eq!(read, content.len());
    content
}

#[test]
fn the_model_of_a_disk_loses_what_a_real_disk_loses() {
    for remedy in [Remedy::GoOn, Remedy::Copy] {
        with_loop_disk("the model of a disk", move |disk| {
            let mut real = Folder::open(&disk.path()).unwrap();
            append(&mut real, remedy, || disk.fill(), || disk.free());
            disk.lose_power();
            drop(real);
            let real = Folder::open(&disk.path()).unwrap();

            let mut model = ModelStorage::new(Disk::new(1, 4096));
            let fails = model.disk.clone();
            let fail = || fails.lock().plan = Some((1, Fault::NoNewBlocks));
            append(&mut model, remedy, fail, || ());
            model.disk.lock().lose_power();

            assert!(content(&real) == content(&model), "they differ");
            let appended = [BEFORE, FAILED, AFTER].concat();
            let is_kept = content(&real) == appended;
            assert_eq!(is_kept, remedy == Remedy::Copy);
        });
    }
}
