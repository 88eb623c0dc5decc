//! What an observer at a database reports.

use super::kit::*;
use crate::support::docker_shared;
use fencepost::model::{LockEvent, LockEventKind};
use fencepost::services::{Backend, Watch};
use fencing_lock::{LockProblem, ReleaseOutcome};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use LockEventKind::{Expired, Granted, Released, Renewed};

#[tokio::test]
async fn a_lease_is_seen_from_its_grant_to_its_end() {
    let _turn = docker_shared();
    let address = Kind::Lease.database().await;
    let observer = Observer::start(Kind::Lease, address.clone()).await;
    let key = unique_key();
    let (brief, _) = Kind::Lease.locks_at(&address, Duration::from_millis(300));
    let (locks, _) = Kind::Lease.locks_at(&address, LONG);
    let first = locks.acquire(&key, soon()).await.unwrap();
    first.renew().await.unwrap();
    let owners = [first.owner().to_owned()];
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    let second = brief.acquire(&key, soon()).await.unwrap();
    sleep_until(second.deadline()).await;
    let third = locks.acquire(&key, soon()).await.unwrap();
    let owners = [owners[0].as_str(), second.owner(), third.owner()];
    let expected = [
        (Granted, owners[0], 1),
        (Renewed, owners[0], 1),
        (Released, owners[0], 1),
        (Granted, owners[1], 2),
        (Expired, owners[1], 2),
        (Granted, owners[2], 3),
    ];
    let rows = observer.stop(&key).await;
    assert_eq!(told(&rows), expected);
}

#[tokio::test]
async fn an_advisory_lock_is_seen_from_its_grant_to_the_end_of_its_session() {
    let _turn = docker_shared();
    let address = Kind::Lease.database().await;
    let observer = Observer::start(Kind::Lease, address.clone()).await;
    let key = unique_key();
    let (locks, _) = Kind::Advisory.locks_at(&address, LONG);
    let first = locks.acquire(&key, soon()).await.unwrap();
    let owner = first.owner().to_owned();
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    let second = locks.acquire(&key, soon()).await.unwrap();
    let next_owner = second.owner().to_owned();
    let tokens = second.fence().0;
    // The session ends with the client, and nobody releases anything.
    std::mem::forget(second);
    observer.has_told(&key, 3).await;
    let postgres = connection().await;
    let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks
               WHERE locktype = 'advisory' AND pid <> pg_backend_pid()
               AND ((classid::bigint << 32) | objid::bigint) = $1";
    let number = (&number_of(&key) as _, tokio_postgres::types::Type::INT8);
    postgres.query_typed(end, &[number]).await.unwrap();
    observer.has_told(&key, 4).await;
    let rows = observer.stop(&key).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind).collect();
    assert_eq!(kinds, [Granted, Released, Granted, Expired]);
    let owners: Vec<_> = rows.iter().map(|row| row.owner.clone().unwrap()).collect();
    assert_eq!(
        owners,
        [&owner, &owner, &next_owner, &next_owner].map(String::clone)
    );
    assert_eq!(rows[3].token.unwrap().0, tokens);
}

#[tokio::test]
async fn an_observer_without_a_server_says_so() {
    for backend in [Backend::PostgresLease, Backend::Mariadb] {
        let (tx, _rx) = mpsc::channel(1);
        let (ready, is_ready) = oneshot::channel();
        let observed = backend.servers().program.observe(Watch {
            address: NOBODY,
            node: "database",
            keys: None,
            events: tx,
            ready,
            stop: CancellationToken::new(),
        });
        let error = observed.await.unwrap_err();
        assert!(matches!(error.problem, LockProblem::Unreachable(_)));
        assert!(is_ready.await.is_err());
    }
}

fn told(rows: &[LockEvent]) -> Vec<(LockEventKind, &str, u64)> {
    let row = |row: &'_ LockEvent| row.token.map_or(0, |token| token.0);
    rows.iter()
        .map(|it| (it.kind, it.owner.as_deref().unwrap_or("-"), row(it)))
        .collect()
}

/// FNV-1a, as the library names keys at the server.
fn number_of(key: &str) -> i64 {
    let hash = key.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash.cast_signed()
}

pub struct Observer {
    stop: CancellationToken,
    told: watch::Receiver<Vec<LockEvent>>,
    observing: JoinHandle<()>,
}

impl Observer {
    pub async fn start(kind: Kind, address: String) -> Observer {
        let (tx, mut rx) = mpsc::channel(10);
        let (ready, is_ready) = oneshot::channel();
        let stop = CancellationToken::new();
        let asked_to_stop = stop.clone();
        let (telling, told) = watch::channel(Vec::new());
        let observing = tokio::spawn(async move {
            let backend: Backend = kind.name().parse().unwrap();
            let observing = backend.servers().program.observe(Watch {
                address: &address,
                node: kind.name(),
                keys: None,
                events: tx,
                ready,
                stop: asked_to_stop,
            });
            let collecting = async {
                while let Some(row) = rx.recv().await {
                    telling.send_modify(|rows: &mut Vec<LockEvent>| rows.push(row));
                }
            };
            let (observed, ()) = tokio::join!(observing, collecting);
            observed.unwrap();
        });
        let version = timeout(10 * SECOND, is_ready).await.unwrap().unwrap();
        let expected = ["15.", "10.11."];
        assert!(
            expected.iter().any(|it| version.starts_with(it)),
            "{version}"
        );
        Observer {
            stop,
            told,
            observing,
        }
    }

    /// Returns when so many rows of a key have been told.
    pub async fn has_told(&self, key: &str, rows: usize) {
        let mut told = self.told.clone();
        let enough = |all: &Vec<LockEvent>| all.iter().filter(|row| row.key == key).count() >= rows;
        let waited = timeout(10 * SECOND, told.wait_for(enough)).await;
        waited.expect("the observer tells it in time").unwrap();
    }

    /// The rows of one key: other tests use the same server.
    pub async fn stop(self, key: &str) -> Vec<LockEvent> {
        self.stop.cancel();
        timeout(10 * SECOND, self.observing).await.unwrap().unwrap();
        let rows = self.told.borrow();
        rows.iter().filter(|row| row.key == key).cloned().collect()
    }
}
