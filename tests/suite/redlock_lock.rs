//! The lock on five real Redis nodes: what a quorum grants and refuses, and
//! what it leaves behind. The nodes serve all tests, so each has its own key.

mod faults;
pub mod kit;
mod tokens;

use crate::support::{contenders_exclude_each_other, docker_shared, times};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{
    LockError, LockProblem, LostReason, RedlockBackend, RedlockSettings, RenewError, TokenScheme,
    keep_renewed,
};
use kit::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::{Instant, sleep_until, timeout};

#[tokio::test]
async fn contenders_exclude_each_other_and_all_get_through() {
    let _turn = docker_shared();
    let clients = (0..10).map(|_| locks(LONG)).collect();
    contenders_exclude_each_other(&unique_key(), clients).await;
}

#[tokio::test]
async fn a_busy_lock_is_not_granted_and_a_wait_ends_at_its_deadline() {
    let _turn = docker_shared();
    let locks = locks(LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert!(locks.try_acquire(&key).await.unwrap().is_none());
    let started_at = Instant::now();
    let deadline = started_at + Duration::from_millis(500);
    let error = locks.acquire(&key, deadline).await.unwrap_err();
    let LockProblem::Timeout { .. } = error.problem else {
        panic!("{error}");
    };
    assert!(started_at.elapsed() < LONG / 4);
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    Nodes::connect().await.until_free(&key).await;
}

#[tokio::test]
async fn two_nodes_that_are_busy_do_not_hinder_and_three_do() {
    let _turn = docker_shared();
    let (locks, nodes, key) = (locks(LONG), Nodes::connect().await, unique_key());
    nodes.block(0, &key).await;
    nodes.block(3, &key).await;
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(nodes.held_by(&key, lease.owner()).await, QUORUM);
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert_eq!(
        nodes.held_by(&key, "another").await,
        2,
        "not ours to delete"
    );

    nodes.block(4, &key).await;
    assert!(locks.try_acquire(&key).await.unwrap().is_none());
    for node in [0, 3, 4] {
        nodes.unblock(node, &key).await;
    }
    // What two nodes had granted was given back.
    nodes.until_free(&key).await;
}

#[tokio::test]
async fn a_release_never_deletes_the_lock_of_another() {
    let _turn = docker_shared();
    let (nodes, key) = (Nodes::connect().await, unique_key());
    let first = locks(Duration::from_millis(300));
    let first = first.acquire(&key, soon()).await.unwrap();
    sleep_until(first.deadline()).await;
    let second = locks(LONG).acquire(&key, soon()).await.unwrap();
    assert!(second.fence() > first.fence());
    let held = nodes.held_by(&key, second.owner()).await;
    assert!(held >= QUORUM);
    assert_eq!(first.release().await, ReleaseOutcome::Superseded);
    assert_eq!(nodes.held_by(&key, second.owner()).await, held);
    assert_eq!(second.release().await, ReleaseOutcome::Released);
    nodes.until_free(&key).await;
}

#[tokio::test]
async fn a_release_after_the_end_says_so() {
    let _turn = docker_shared();
    let locks = locks(Duration::from_millis(200));
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    sleep_until(lease.deadline() + Duration::from_millis(200)).await;
    assert_eq!(lease.release().await, ReleaseOutcome::Expired);
}

#[tokio::test]
async fn a_renewal_prolongs_what_is_held() {
    let _turn = docker_shared();
    let (locks, nodes, key) = (locks(3 * SECOND), Nodes::connect().await, unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let mut renewals = 0;
    let lost = timeout(5 * SECOND, keep_renewed(&lease, || renewals += 1)).await;
    assert!(lost.is_err(), "lost: {lost:?}");
    assert!(renewals >= 3, "{renewals}");
    assert!(nodes.held_by(&key, lease.owner()).await >= QUORUM);
}

#[tokio::test]
async fn a_renewal_never_re_creates_a_lock_and_never_takes_one() {
    let _turn = docker_shared();
    let (locks, nodes, key) = (locks(LONG), Nodes::connect().await, unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    for node in [0, 1] {
        nodes.unblock(node, &key).await;
    }
    lease.renew().await.expect("a quorum is left");
    nodes.unblock(2, &key).await;
    let lost = lease.renew().await;
    assert!(matches!(lost, Err(RenewError::Lost(LostReason::Expired))));
    let told = timeout(SECOND, lease.lost()).await;
    assert_eq!(told, Ok(LostReason::Expired), "told before the deadline");
    let holders = nodes.holders(&key).await;
    assert_eq!(holders[..3], [None, None, None], "re-created");
    drop(lease);
    nodes.until_free(&key).await;

    let lease = locks.acquire(&key, soon()).await.unwrap();
    for node in [0, 1, 2] {
        nodes.block(node, &key).await;
    }
    let lost = lease.renew().await;
    assert!(matches!(
        lost,
        Err(RenewError::Lost(LostReason::Superseded))
    ));
    assert_eq!(lease.release().await, ReleaseOutcome::Superseded);
    assert_eq!(nodes.held_by(&key, "another").await, 3);
}

#[tokio::test]
async fn scripts_work_while_the_nodes_keep_forgetting_them() {
    let _turn = docker_shared();
    let (locks, nodes, key) = (locks(LONG), Nodes::connect().await, unique_key());
    let forgetting = async {
        loop {
            let _: Vec<String> = nodes.ask_all(&["SCRIPT", "FLUSH"]).await;
        }
    };
    let using = async {
        for _ in 0..100 {
            let lease = locks.acquire(&key, soon()).await.unwrap();
            lease.renew().await.unwrap();
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
        }
    };
    tokio::select! {
        () = forgetting => {}
        () = using => {}
    }
    nodes.until_free(&key).await;
}

#[tokio::test]
async fn a_thousand_cancelled_waits_and_dropped_leases_leave_no_key() {
    let _turn = docker_shared();
    let (locks, nodes, key) = (locks(LONG), Nodes::connect().await, unique_key());
    // Half of them want one lock, half are cut off in the middle of a try that
    // would be granted.
    let mut random = fastrand::Rng::with_seed(1);
    let mut cut_off = 0_usize;
    let rounds = times(10, 100);
    let granted = Arc::new(AtomicUsize::new(0));
    // As long as a grant takes on this machine, or a little longer.
    let mut longest_us = 100_000;
    for round in 0..rounds {
        if granted.load(Ordering::Relaxed) < 10 * round {
            longest_us *= 2;
        }
        let mut waits = tokio::task::JoinSet::new();
        for n in 0..100 {
            let key = match n % 2 {
                0 => key.clone(),
                _ => format!("{key}-{}", random.u64(..)),
            };
            let (locks, granted) = (locks.clone(), Arc::clone(&granted));
            let patience = Duration::from_micros(random.u64(..longest_us));
            waits.spawn(timeout(patience, async move {
                let _lease = locks.acquire(&key, Instant::now() + LONG).await;
                granted.fetch_add(1, Ordering::Relaxed);
                std::future::pending::<()>().await;
            }));
        }
        while let Some(wait) = waits.join_next().await {
            cut_off += usize::from(wait.unwrap().is_err());
        }
    }
    assert_eq!(cut_off, rounds * 100);
    nodes.until_free(&format!("{key}*")).await;
    let tokens: Vec<Vec<String>> = nodes
        .ask_all(&["KEYS", &fence_key(&format!("{key}*"))])
        .await;
    let granted = tokens.concat().len();
    assert!(granted > 50, "hardly any was granted: {granted}");
}

#[tokio::test]
async fn bad_input_is_refused_and_named() {
    let _turn = docker_shared();
    let servers = addresses();
    let quorum_of = |quorum| {
        let settings = RedlockSettings {
            quorum: Some(quorum),
            ..RedlockSettings::default()
        };
        RedlockBackend::new(&servers, settings)
    };
    assert!(quorum_of(4).is_ok());
    for quorum in [2, 6] {
        let error = quorum_of(quorum).err().expect("refused");
        assert!(error.to_string().contains(&servers[4]), "{error}");
        assert!(matches!(error.problem, LockProblem::BadQuorum { .. }));
    }
    // The drift that is allowed for would eat all of it: no wait can help.
    let hasty = locks(Duration::from_millis(2));
    let error = timeout(SECOND, hasty.acquire("key", soon())).await;
    let error: LockError = error.expect("at once").unwrap_err();
    assert!(matches!(error.problem, LockProblem::TtlWithinDrift { .. }));
    assert_eq!((error.backend, error.key.as_str()), ("redlock", "key"));
    assert_eq!(error.node, servers.join(","));

    let naive = locks_of(&servers, LONG, TokenScheme::UnsafeMaxOfCounters);
    let error = naive.try_acquire("").await.unwrap_err();
    assert_eq!(error.backend, "redlock-unsafe-tokens");
}
