use crate::redlock_lock::kit::*;
use crate::support::{docker_alone, docker_shared};
use fencepost::dlock::{
    LockClient, LockMetrics, LockSettings, Mutant, RedlockBackend, RedlockSettings, RenewError,
};
use fencepost::model::ReleaseOutcome;
use futures_util::FutureExt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn an_unconditional_write_back_makes_a_second_holder() {
    // A script that somebody makes the nodes forget would be a step more.
    let Some(_turn) = docker_alone() else { return };
    assert!(!a_grant_that_is_over_still_counts(None).await);
    let mutant = Some(Mutant::WriteBackUnconditional);
    assert!(a_grant_that_is_over_still_counts(mutant).await);
}

/// Between the grants of a try and its write-back, two of three run out and
/// somebody else gets the lock. Is the try told that it holds it?
async fn a_grant_that_is_over_still_counts(mutant: Option<Mutant>) -> bool {
    let (slow, key) = (client(mutant), unique_key());
    let nodes = only_a_quorum_for(&key).await;
    // It is connected then, and one poll of a try sends everything.
    let lease = slow.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    // One node is ahead of every clock, so the others have to be written to.
    let ahead = (1_u64 << 52).to_string();
    let () = nodes.ask(0, &["SET", &fence_key(&key), &ahead]).await;

    let mut attempt = pin!(slow.try_acquire(&key));
    assert!(attempt.as_mut().now_or_never().is_none());
    let granted = async {
        while nodes.holders(&key).await.contains(&None) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(5 * SECOND, granted).await.expect("granted");
    for node in [1, 2, 3] {
        nodes.unblock(node, &key).await;
    }
    let other = client(mutant).acquire(&key, soon()).await.unwrap();
    // Only now the try hears of its grants.
    let answer = attempt.await;
    assert_eq!(nodes.held_by(&key, other.owner()).await, QUORUM);
    matches!(answer, Ok(Some(_)))
}

#[tokio::test]
async fn a_release_without_compare_frees_the_lock_of_another() {
    let Some(_turn) = docker_shared() else { return };
    for mutant in [None, Some(Mutant::ReleaseWithoutCompare)] {
        let [first, second] = [client(mutant), client(mutant)];
        let is_left = a_late_release_leaves_the_next_holder(first, second).await;
        assert_eq!(is_left, mutant.is_none());
    }
}

#[tokio::test]
async fn a_late_release_with_the_same_nonce_frees_a_later_hold() {
    let Some(_turn) = docker_shared() else { return };
    for mutant in [None, Some(Mutant::ReuseNonce)] {
        let locks = client(mutant);
        let is_left = a_late_release_leaves_the_next_holder(locks.clone(), locks).await;
        assert_eq!(is_left, mutant.is_none());
    }
}

async fn a_late_release_leaves_the_next_holder(first: LockClient, second: LockClient) -> bool {
    let key = unique_key();
    let nodes = only_a_quorum_for(&key).await;
    let first = first.acquire(&key, soon()).await.unwrap();
    runs_out(&nodes, &key).await;
    let second = second.acquire(&key, soon()).await.unwrap();
    first.release().await;
    assert!(!second.is_lost(), "it believes in its lock");
    nodes.held_by(&key, second.owner()).await >= QUORUM
}

#[tokio::test]
async fn a_renewal_that_re_creates_brings_a_superseded_holder_back() {
    let Some(_turn) = docker_shared() else { return };
    for mutant in [None, Some(Mutant::RenewRecreates)] {
        let (locks, key) = (client(mutant), unique_key());
        let nodes = only_a_quorum_for(&key).await;
        let first = locks.acquire(&key, soon()).await.unwrap();
        runs_out(&nodes, &key).await;
        let second = locks.acquire(&key, soon()).await.unwrap();
        assert!(second.fence() > first.fence());
        assert_eq!(second.release().await, ReleaseOutcome::Released);
        let renewed = first.renew().await;
        let held = nodes.held_by(&key, first.owner()).await;
        if mutant.is_some() {
            assert!(renewed.is_ok(), "{renewed:?}");
            assert!(held >= QUORUM, "{held}");
        } else {
            assert!(matches!(renewed, Err(RenewError::Lost(_))), "{renewed:?}");
            assert_eq!(held, 0);
        }
    }
}

/// As another process would have one.
fn client(mutant: Option<Mutant>) -> LockClient {
    let settings = RedlockSettings {
        mutant,
        ..RedlockSettings::default()
    };
    let backend = Arc::new(RedlockBackend::new(&addresses(), settings).unwrap());
    let settings = LockSettings { ttl: LONG, seed: 1 };
    LockClient::new(backend, settings, LockMetrics::default()).unwrap()
}

/// All of the other three are needed, so none of their grants is still under way
/// when somebody holds the lock.
async fn only_a_quorum_for(key: &str) -> Nodes {
    let nodes = Nodes::connect().await;
    for node in QUORUM..addresses().len() {
        nodes.block(node, key).await;
    }
    nodes
}

/// The TTL is over by the nodes' clocks, and not yet by the holder's.
async fn runs_out(nodes: &Nodes, key: &str) {
    for node in 0..QUORUM {
        nodes.unblock(node, key).await;
    }
}
