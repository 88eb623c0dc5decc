//! Requests that were given up and reach the server afterwards.

use super::kit::*;
use crate::support::{Wire, connection_to, docker_shared, own_redis};
use fencepost::model::WaitPolicy;
use fencing_lock::{
    LockBackend, LockClient, LockMetrics, LockSettings, RedisBackend, RedlockBackend,
    RedlockSettings, ReleaseOutcome,
};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use tokio::time::{Instant, sleep, timeout};

/// All that make requests of their own to a Redis.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Redis(WaitPolicy),
    Redlock,
}

pub const KINDS: [Kind; 4] = [
    Kind::Redis(WaitPolicy::Spin),
    Kind::Redis(WaitPolicy::Notify),
    Kind::Redis(WaitPolicy::Queue),
    Kind::Redlock,
];

pub fn locks(kind: Kind, address: &str) -> LockClient {
    let backend: Arc<dyn LockBackend> = match kind {
        Kind::Redis(wait) => Arc::new(RedisBackend::new(address, waiting_by(wait)).unwrap()),
        Kind::Redlock => {
            let settings = RedlockSettings::default();
            Arc::new(RedlockBackend::new(&[address], settings).unwrap())
        }
    };
    let settings = LockSettings { ttl: LONG, seed: 1 };
    LockClient::new(backend, settings, LockMetrics::default()).unwrap()
}

/// The connection stands and the scripts are known then.
async fn warm(locks: &LockClient) {
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    lease.release().await;
}

#[tokio::test]
async fn tries_that_lay_in_a_frozen_server_are_undone() {
    let _turn = docker_shared();
    let server = own_redis();
    for kind in KINDS {
        let locks = locks(kind, &server.address);
        warm(&locks).await;
        let keys: Vec<String> = (0..3).map(|_| unique_key()).collect();
        server.freeze();
        // The first two that are not answered make the client give up the connection.
        let tries = keys.iter().map(|key| locks.try_acquire(key));
        for tried in futures_util::future::join_all(tries).await {
            tried.unwrap_err();
        }
        server.thaw();
        let mut redis = connection_to(&server.address).await;
        for key in &keys {
            until_granted_once(&mut redis, key).await;
            until_nothing_left(&mut redis, key).await;
        }
    }
}

#[tokio::test]
async fn a_try_that_comes_after_its_undo_refuses_itself() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut redis = connection_to(&server.address).await;
    for kind in KINDS {
        let wire = Wire::to(server.address.clone()).await;
        let locks = locks(kind, &wire.address);
        warm(&locks).await;
        let key = unique_key();
        wire.hold();
        // The first try is held back and given up; another one gets through.
        let lease = locks.acquire(&key, Instant::now() + LONG).await.unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released, "{kind:?}");
        let marks = async {
            loop {
                let marks: Vec<String> = redis.keys(format!("gone:*{key}*")).await.unwrap();
                if !marks.is_empty() {
                    return;
                }
                sleep(SECOND / 100).await;
            }
        };
        timeout(LONG, marks).await.expect("a mark");
        // The try comes, and the undo behind it is lost.
        wire.cut();
        wire.until_the_held_ended().await;
        until_nothing_left(&mut redis, &key).await;
    }
}

#[tokio::test]
async fn a_release_reaches_a_server_that_forgot_its_scripts_and_answers_late() {
    let _turn = docker_shared();
    let server = own_redis();
    for kind in KINDS {
        let mut redis = connection_to(&server.address).await;
        let (locks, key) = (locks(kind, &server.address), unique_key());
        let lease = locks.acquire(&key, soon()).await.unwrap();
        super::flush_scripts(&mut redis).await;
        server.freeze();
        assert_ne!(lease.release().await, ReleaseOutcome::Released, "{kind:?}");
        server.thaw();
        until_nothing_left(&mut redis, &key).await;
    }
}

#[tokio::test]
async fn a_release_whose_connection_breaks_is_sent_again() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut redis = connection_to(&server.address).await;
    for kind in KINDS {
        let wire = Wire::to(server.address.clone()).await;
        let (locks, key) = (locks(kind, &wire.address), unique_key());
        let lease = locks.acquire(&key, soon()).await.unwrap();
        wire.hold();
        let releasing = tokio::spawn(lease.release());
        wire.until_a_request_is_held().await;
        // A release that fails at once is tried again by the lease.
        sleep(SECOND / 5).await;
        for of_type in ["normal", "pubsub"] {
            let mut kill = redis::cmd("CLIENT");
            kill.arg("KILL").arg("TYPE").arg(of_type).arg("SKIPME");
            let _: u64 = kill.arg("yes").query_async(&mut redis).await.unwrap();
        }
        assert_ne!(releasing.await.unwrap(), ReleaseOutcome::Released);
        until_nothing_left(&mut redis, &key).await;
    }
}

#[tokio::test]
async fn an_undo_reaches_a_server_that_forgot_its_scripts_and_answers_late() {
    let _turn = docker_shared();
    let server = own_redis();
    for kind in KINDS {
        let mut redis = connection_to(&server.address).await;
        let (locks, key) = (locks(kind, &server.address), unique_key());
        warm(&locks).await;
        forget_all_but_tries(&locks, &mut redis).await;
        server.freeze();
        locks.try_acquire(&key).await.unwrap_err();
        server.thaw();
        until_granted_once(&mut redis, &key).await;
        until_nothing_left(&mut redis, &key).await;
    }
}

/// Leaves the server with the scripts of a try, and without those of a release.
async fn forget_all_but_tries(locks: &LockClient, redis: &mut MultiplexedConnection) {
    super::flush_scripts(redis).await;
    let busy = unique_key();
    let () = redis.set(format!("lock:{{{busy}}}"), "x").await.unwrap();
    assert!(locks.try_acquire(&busy).await.unwrap().is_none());
    let () = redis.del(format!("lock:{{{busy}}}")).await.unwrap();
}

/// Returns when the server has carried out a try for the key.
async fn until_granted_once(redis: &mut MultiplexedConnection, key: &str) {
    let granted = async {
        let fence = format!("fence:{{{key}}}");
        while redis.get::<_, Option<u64>>(&fence).await.unwrap().is_none() {
            sleep(SECOND / 100).await;
        }
    };
    timeout(LONG, granted).await.expect("the try comes");
}
