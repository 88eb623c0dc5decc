//! Requests that are carried out after their caller gave them up, and members that say nothing.

use super::kit::*;
use super::relays::{Relays, Treatment};
use crate::support::{docker_alone, docker_shared, etcd_servers};
use fencing_lock::{Lease, LockBackend, LockClient, LockProblem, ReleaseOutcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// So long that nothing expires while a test waits for something else.
const VERY_LONG: Duration = LONG.saturating_mul(10);

/// Nothing of this is under way any more when it returns.
async fn has_a_session(locks: &LockClient) {
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

/// Somebody who waits for the key, and whose first such call is held back.
async fn held_back(
    call: &'static str,
    relays: &Relays,
    locks: &LockClient,
    key: &str,
) -> JoinHandle<Lease> {
    relays.treat_first(call, Treatment::HoldBack);
    let waiting = waiter(locks, key);
    relays.until_held(call, 1).await;
    waiting
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_comes_late_is_refused() {
    let _turn = docker_shared();
    let (etcd, relays) = (etcd().await, Relays::to_all().await);
    let (locks, _) = locks_of(backend_at(&relays.addresses), VERY_LONG);
    has_a_session(&locks).await;
    let key = unique_key();
    relays.treat_first("Txn", Treatment::HoldBack);
    // Another member is asked after a while.
    let lease = waiter(&locks, &key).await.unwrap();
    relays.until_held("Txn", 1).await;
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    relays.let_go("Txn").await;
    assert_eq!(line(&etcd, &key).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_comes_after_its_caller_is_gone_is_refused() {
    let _turn = docker_shared();
    let (etcd, relays) = (etcd().await, Relays::to_all().await);
    let (locks, _) = locks_of(backend_at(&relays.addresses), VERY_LONG);
    has_a_session(&locks).await;
    let key = unique_key();
    let answered = relays.answered("Txn");
    let gone = held_back("Txn", &relays, &locks, &key).await;
    gone.abort();
    // Nobody knows what became of the entry, so it is made once more, and undone.
    relays.until_answered("Txn", answered + 2).await;
    relays.let_go("Txn").await;
    assert_eq!(line(&etcd, &key).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_call_that_comes_after_its_caller_is_gone_is_refused() {
    let _turn = docker_shared();
    let (etcd, key, relays) = (etcd().await, unique_key(), Relays::to_all().await);
    let (locks, _) = locks_of(api_backend_at(&relays.addresses), VERY_LONG);
    let gone = held_back("Lock", &relays, &locks, &key).await;
    gone.abort();
    relays.until_answered("LeaseRevoke", 1).await;
    relays.let_go("Lock").await;
    assert_eq!(line(&etcd, &key).await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_call_is_undone_when_members_answer_again() {
    let _turn = docker_shared();
    let (etcd, key, relays) = (etcd().await, unique_key(), Relays::to_all().await);
    let (locks, _) = locks_of(api_backend_at(&relays.addresses), VERY_LONG);
    let gone = held_back("Lock", &relays, &locks, &key).await;
    relays.fall_silent();
    gone.abort();
    // Every member was asked once to undo it.
    relays
        .until_held("LeaseRevoke", relays.addresses.len())
        .await;
    relays.let_go("Lock").await;
    assert_eq!(line(&etcd, &key).await.len(), 1, "it was not undone yet");
    relays.treat(|_, _| Treatment::PassOn);
    relays.until_answered("LeaseRevoke", 1).await;
    assert_eq!(line(&etcd, &key).await.len(), 0);
}

/// A member that finds a call given up deletes the place of that call by its name.
#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_thaws_does_not_free_the_lock_of_a_later_call() {
    let _turn = docker_alone();
    let (etcd, key) = (etcd().await, unique_key());
    // The leader is none of them, so the first one is asked first.
    let mut followers = vec![0, 1, 2];
    followers.remove(leader().await);
    let frozen = &etcd_servers()[followers[0]];
    let known: Vec<String> = followers
        .iter()
        .map(|one| members()[*one].clone())
        .collect();
    let relays = Relays::to(&known).await;
    let (mine, _) = locks_of(api_backend_at(&relays.addresses), LONG / 2);
    let (theirs, _) = locks(LONG);
    let holder = theirs.acquire(&key, soon()).await.unwrap();
    let waiting = waiter(&mine, &key);
    until_length(&etcd, &key, 2).await;
    frozen.freeze();
    relays.until_came("Lock", 2).await;
    assert_eq!(holder.release().await, ReleaseOutcome::Released);
    let lease = waiting.await.unwrap();
    frozen.thaw();
    let second = theirs.acquire(&key, Instant::now() + 3 * SECOND).await;
    let are_two = second.is_ok() && !lease.is_lost();
    assert!(!are_two, "{lease:?} and {second:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_a_stopping_server_carried_out_is_undone() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let relays = Relays::to(&members()[..1]).await;
    let (locks, _) = locks_of(backend_at(&relays.addresses), VERY_LONG);
    has_a_session(&locks).await;
    relays.treat_first("Txn", Treatment::StopBeforeTheAnswer);
    let error = locks.try_acquire(&key).await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::NoAnswer(_)), "{error}");
    until_length(&etcd, &key, 0).await;
    assert!(locks.try_acquire(&key).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_at_silent_members_ends_with_no_answer() {
    let _turn = docker_shared();
    tokio::join!(waits_in_vain(backend_at), waits_in_vain(api_backend_at));
}

async fn waits_in_vain(backend_at: fn(&[String]) -> Arc<dyn LockBackend>) {
    let (etcd, key, relays) = (etcd().await, unique_key(), Relays::to_all().await);
    let _holder = locks(VERY_LONG).0.acquire(&key, soon()).await.unwrap();
    let (mine, _) = locks_of(backend_at(&relays.addresses), VERY_LONG);
    let deadline = Instant::now() + 20 * SECOND;
    let waiting = {
        let key = key.clone();
        tokio::spawn(async move { mine.acquire(&key, deadline).await })
    };
    until_length(&etcd, &key, 2).await;
    relays.fall_silent();
    let error = waiting.await.unwrap().unwrap_err();
    let LockProblem::Timeout { last, .. } = &error.problem else {
        panic!("{error}");
    };
    let last = last.as_deref();
    assert!(matches!(last, Some(LockProblem::NoAnswer(_))), "{error}");
}
