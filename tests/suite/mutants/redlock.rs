use crate::redlock_lock::kit::*;
use crate::support::{docker_alone, docker_shared};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{
    LockClient, LockMetrics, LockSettings, Mutant, RedlockBackend, RedlockSettings, RenewError,
};
use futures_util::FutureExt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[tokio::test]
async fn an_unconditional_write_back_makes_a_second_holder() {
    // A script that somebody makes the nodes forget would be a step more.
    let _turn = docker_alone();
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
    let _turn = docker_shared();
    for mutant in [None, Some(Mutant::ReleaseWithoutCompare)] {
        let [first, second] = [client(mutant), client(mutant)];
        let is_left = a_late_release_leaves_the_next_holder(first, second).await;
        assert_eq!(is_left, mutant.is_none());
    }
}

#[tokio::test]
async fn a_late_release_with_the_same_nonce_frees_a_later_hold() {
    let _turn = docker_shared();
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
    let _turn = docker_shared();
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

#[tokio::test]
async fn a_lock_that_grants_everybody_has_two_holders() {
    let _turn = docker_shared();
    for mutant in [None, Some(Mutant::GrantEverybody)] {
        let (key, nodes) = (unique_key(), Nodes::connect().await);
        let first = client(mutant).acquire(&key, soon()).await.unwrap();
        let second = client(mutant).try_acquire(&key).await.unwrap();
        assert_eq!(second.is_some(), mutant.is_some());
        assert!(!first.is_lost());
        let granted_last = second.as_ref().unwrap_or(&first);
        assert!(nodes.held_by(&key, granted_last.owner()).await >= QUORUM);
        assert!(second.is_none_or(|second| second.fence() > first.fence()));
    }
}

#[tokio::test]
async fn one_who_enters_without_the_lock_is_not_its_holder_at_the_nodes() {
    let _turn = docker_shared();
    for mutant in [None, Some(Mutant::EnterWithoutLock)] {
        let (key, nodes) = (unique_key(), Nodes::connect().await);
        let first = client(mutant).acquire(&key, soon()).await.unwrap();
        let second = client(mutant).try_acquire(&key).await.unwrap();
        assert_eq!(second.is_some(), mutant.is_some());
        assert!(nodes.held_by(&key, first.owner()).await >= QUORUM);
        assert!(second.is_none_or(|second| second.fence() > first.fence()));
    }
}

#[tokio::test]
async fn a_lock_that_never_expires_has_no_end_at_the_nodes() {
    let _turn = docker_shared();
    for mutant in [None, Some(Mutant::NeverExpire)] {
        let key = unique_key();
        let nodes = only_a_quorum_for(&key).await;
        let lease = client(mutant).acquire(&key, soon()).await.unwrap();
        lease.renew().await.unwrap();
        for node in 0..QUORUM {
            // -1 is a key without an end.
            let left_ms: i64 = nodes.ask(node, &["PTTL", &lock_key(&key)]).await;
            assert_eq!(left_ms == -1, mutant.is_some(), "{left_ms}");
        }
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn tokens_that_run_backwards_get_lower_with_every_grant() {
    let _turn = docker_shared();
    for mutant in [None, Some(Mutant::TokensBackwards)] {
        let key = unique_key();
        let [one, another] = [client(mutant), client(mutant)];
        let mut tokens = Vec::new();
        for locks in [&one, &another, &one, &another] {
            let lease = locks.acquire(&key, soon()).await.unwrap();
            tokens.push(lease.fence());
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
        }
        let grow = tokens.is_sorted_by(|one, next| one < next);
        let fall = tokens.is_sorted_by(|one, next| one > next);
        assert_eq!((grow, fall), (mutant.is_none(), mutant.is_some()));
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
