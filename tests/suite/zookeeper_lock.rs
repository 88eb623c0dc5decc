//! The lock in a real ZooKeeper ensemble: what it grants, what it refuses, and what it leaves
//! behind. One ensemble serves all tests at once, so each has its own key.

mod cut_off;
mod kit;
mod late;
mod observer;
mod servers;

use crate::support::{contenders_exclude_each_other, docker_shared, times};
use fencing_lock::servers::ZOOKEEPER_LOCKS;
use fencing_lock::{LockProblem, LostReason, ReleaseOutcome, RenewError, keep_renewed};
use kit::*;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;
use zookeeper_client::{Acls, CreateMode};

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_many_processes_exclude_each_other() {
    let _turn = docker_shared();
    let clients = (0..10).map(|_| locks(LONG).0).collect();
    contenders_exclude_each_other(&unique_key(), clients).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn contenders_of_one_process_exclude_each_other() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    contenders_exclude_each_other(&unique_key(), vec![locks; 20]).await;
    assert_eq!(metrics.leases_held.get(), 0);
}

#[tokio::test]
async fn waiters_are_served_in_the_order_in_which_they_came() {
    let _turn = docker_shared();
    let (zookeeper, key) = (connection().await, unique_key());
    let (locks, _) = locks(LONG);
    let first = locks.acquire(&key, soon()).await.unwrap();
    let mut waiting = Vec::new();
    for number in 0..4 {
        waiting.push(waiter(&locks, &key));
        until_line(&zookeeper, &key, number + 2).await;
    }
    assert!(locks.try_acquire(&key).await.unwrap().is_none());
    let mut last = first.fence();
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    for waiting in waiting {
        let lease = timeout(10 * SECOND, waiting)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        assert!(lease.fence() > last);
        last = lease.fence();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn a_token_is_the_zxid_of_the_holders_own_node() {
    let _turn = docker_shared();
    let (zookeeper, key) = (connection().await, unique_key());
    let (locks, _) = locks(LONG);
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let [(path, stat)] = &line(&zookeeper, &key).await[..] else {
        panic!("one place");
    };
    assert!(path.contains(lease.owner()));
    assert_eq!(stat.czxid as u64, lease.fence().0);
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert!(line(&zookeeper, &key).await.is_empty());
}

#[tokio::test]
async fn a_session_is_kept_for_longer_than_its_timeout() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(2 * SECOND);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let lost = timeout(5 * SECOND, keep_renewed(&lease, || {})).await;
    assert!(lost.is_err(), "lost: {lost:?}");
    assert!(metrics.renews.get() >= 3, "{}", metrics.renews.get());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_renewal_never_re_creates_a_place() {
    let _turn = docker_shared();
    let zookeeper = connection().await;
    let (locks, _) = locks(LONG);
    for (is_followed, expected) in [(false, LostReason::Expired), (true, LostReason::Superseded)] {
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        let places = line(&zookeeper, &key).await;
        if is_followed {
            let next = format!("{ZOOKEEPER_LOCKS}/{key}/{}-", Uuid::new_v4());
            let ephemeral = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
            zookeeper.create(&next, b"", &ephemeral).await.unwrap();
        }
        zookeeper.delete(&places[0].0, None).await.unwrap();
        let renewed = lease.renew().await;
        assert!(
            matches!(renewed, Err(RenewError::Lost(reason)) if reason == expected),
            "{renewed:?}"
        );
        let left = line(&zookeeper, &key).await.len();
        assert_eq!(left, usize::from(is_followed));
        let released = lease.release().await;
        assert_ne!(released, ReleaseOutcome::Released);
        let left = line(&zookeeper, &key).await.len();
        assert_eq!(left, usize::from(is_followed), "another's place stays");
    }
}

#[tokio::test]
async fn a_ttl_that_the_servers_do_not_keep_is_an_error_that_says_what_they_keep() {
    let _turn = docker_shared();
    for (ttl, kept, words) in [
        (SECOND / 10, SECOND / 2, "at least 500 ms"),
        (61 * SECOND, 60 * SECOND, "at most 60000 ms"),
    ] {
        let (locks, _) = locks(ttl);
        let error = locks.acquire("account-42", soon()).await.unwrap_err();
        let LockProblem::TtlNotKept { ttl: refused, said } = &error.problem else {
            panic!("{error}");
        };
        assert_eq!(*refused, ttl);
        assert!(said.contains(&format!("{} ms", kept.as_millis())), "{said}");
        let named = (error.backend, error.key.as_str());
        assert_eq!(named, ("zookeeper", "account-42"));
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[tokio::test]
async fn every_key_has_a_line_of_its_own() {
    let _turn = docker_shared();
    let (locks, _) = locks(LONG);
    let tail = unique_key();
    let mut held = Vec::new();
    for key in ["account 42 / ü%", "..", "a/b", "a%2Fb", &"k".repeat(200)] {
        let key = format!("{key}-{tail}");
        held.push(locks.acquire(&key, soon()).await.unwrap());
    }
    for key in [".", ".."] {
        held.push(locks.acquire(key, soon()).await.unwrap());
    }
    for lease in held {
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

/// Some are cut off in the middle of a request that would be granted, some in a wait, some while
/// they are woken, and some while they hold.
#[tokio::test]
async fn hundreds_of_cancelled_waits_and_dropped_leases_leave_nothing() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let keys: Vec<String> = (0..3).map(|_| unique_key()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut waits = JoinSet::new();
    for n in 0..times(300, 10_000) {
        let (locks, key) = (locks.clone(), keys[n % 3].clone());
        let patience = Duration::from_micros(random.u64(0..60_000));
        waits.spawn(async move {
            let holding = async {
                let _lease = locks.acquire(&key, Instant::now() + LONG).await;
                sleep(Duration::from_millis(1)).await;
            };
            // Whatever it is doing when the time is over is dropped.
            let _cut_off = timeout(patience, holding).await;
        });
        if waits.len() >= 10 {
            waits.join_next().await;
        }
    }
    waits.join_all().await;
    let zookeeper = connection().await;
    for key in &keys {
        until_line(&zookeeper, key, 0).await;
    }
    assert_eq!(metrics.leases_held.get(), 0);
    assert_eq!(metrics.queue_length.get(), 0);
}
