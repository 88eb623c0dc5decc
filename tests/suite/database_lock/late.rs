//! Requests that were given up and reach the server afterwards.

use super::kit::*;
use crate::support::{Wire, docker_shared, own_postgres};
use fencing_lock::servers::PostgresConnection;
use fencing_lock::{LockClient, ReleaseOutcome};
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::Type;

/// The connection stands and the table is there then.
async fn warm(locks: &LockClient) {
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    lease.release().await;
}

#[tokio::test]
async fn tries_that_lay_in_a_frozen_server_are_undone() {
    let _turn = docker_shared();
    for kind in KINDS {
        let server = kind.own_server();
        let (locks, _) = kind.locks_at(&server.address, LONG);
        warm(&locks).await;
        let keys: Vec<String> = (0..3).map(|_| unique_key()).collect();
        server.freeze();
        let tries = keys.iter().map(|key| locks.try_acquire(key));
        for tried in futures_util::future::join_all(tries).await {
            tried.unwrap_err();
        }
        server.thaw();
        for key in &keys {
            if kind == Kind::Lease {
                until_tried(&connection_to(&server.address).await, key).await;
            }
            until_free(kind, &server.address, key).await;
        }
    }
}

#[tokio::test]
async fn a_try_that_comes_after_its_undo_refuses_itself() {
    let _turn = docker_shared();
    let server = own_postgres();
    let postgres = connection_to(&server.address).await;
    let wire = Wire::to(server.address.clone()).await;
    let (locks, _) = Kind::Lease.locks_at(&wire.address, LONG);
    warm(&locks).await;
    let key = unique_key();
    wire.hold();
    // The first try is held back and given up; another one gets through.
    let lease = locks.acquire(&key, Instant::now() + LONG).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    let mark = async {
        while marks(&postgres, &key).await == 0 {
            sleep(SECOND / 100).await;
        }
    };
    timeout(LONG, mark).await.expect("a mark");
    let before = token(&postgres, &key).await;
    // The try comes, and the undo behind it is lost.
    wire.cut();
    wire.until_the_held_ended().await;
    assert_eq!(holder(&postgres, &key).await, None);
    assert_eq!(token(&postgres, &key).await, before, "it drew no token");
}

/// The session of such a try ends behind it, so it holds nothing for longer than a moment.
#[tokio::test]
async fn a_try_for_a_lock_of_a_session_that_comes_late_holds_nothing() {
    let _turn = docker_shared();
    for kind in OF_SESSIONS {
        let wire = Wire::to(kind.address()).await;
        let (locks, _) = kind.locks_at(&wire.address, LONG);
        warm(&locks).await;
        let key = unique_key();
        wire.hold();
        let lease = locks.acquire(&key, Instant::now() + LONG).await.unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        wire.cut();
        wire.until_the_held_ended().await;
        until_free(kind, &kind.address(), &key).await;
    }
}

#[tokio::test]
async fn a_release_whose_connection_breaks_is_sent_again() {
    let _turn = docker_shared();
    let server = own_postgres();
    let postgres = connection_to(&server.address).await;
    for kind in [Kind::Lease, Kind::Advisory] {
        let wire = Wire::to(server.address.clone()).await;
        let ((locks, _), key) = (kind.locks_at(&wire.address, LONG), unique_key());
        let lease = locks.acquire(&key, soon()).await.unwrap();
        wire.hold();
        let releasing = tokio::spawn(lease.release());
        wire.until_a_request_is_held().await;
        // A release that fails at once is tried again by the lease.
        sleep(SECOND / 5).await;
        let end = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()";
        postgres.query_typed(end, &[]).await.unwrap();
        assert_ne!(releasing.await.unwrap(), ReleaseOutcome::Released);
        wire.let_go();
        until_free(kind, &server.address, &key).await;
    }
}

async fn marks(postgres: &PostgresConnection, key: &str) -> i64 {
    let marks = "SELECT count(*) FROM fencing_locks, jsonb_object_keys(gone) WHERE key = $1";
    let row = postgres.query_typed_one(marks, &[(&key, Type::TEXT)]).await;
    row.unwrap().get(0)
}

/// Returns when the server has carried out a try for the key.
async fn until_tried(postgres: &PostgresConnection, key: &str) {
    let tried = async {
        while token(postgres, key).await.is_none() {
            sleep(SECOND / 100).await;
        }
    };
    timeout(LONG, tried).await.expect("the try comes");
}
