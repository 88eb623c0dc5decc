//! GET and then DEL, against a real server: the race shown, and closed.

use super::kit::*;
use crate::support::docker_shared;
use fencing_lock::ReleaseOutcome;
use fencing_lock::{Lease, LockMetrics};
use tokio::time::sleep_until;

#[tokio::test]
async fn get_then_del_deletes_the_lock_of_another() {
    let _turn = docker_shared();
    let (first, metrics, key) = short_hold().await;
    let (others, _) = locks(LONG);
    let (expired_at, mut second) = (first.deadline(), None);
    // In between, the lock runs out and somebody else gets it.
    let between = async {
        sleep_until(expired_at).await;
        second = Some(others.acquire(&key, soon()).await.unwrap());
    };
    let outcome = first.release_unsafe_get_then_del(Box::pin(between)).await;
    assert_eq!(outcome, ReleaseOutcome::FreedAnother);
    assert_eq!(holder(&key).await, None, "the lock of another is gone");
    assert_eq!(metrics.release_by_non_owner_applied.get(), 1);
    let second = second.unwrap();
    assert!(!second.is_lost(), "who believes in it all the same");
    assert_eq!(second.release().await, ReleaseOutcome::Expired);
}

#[tokio::test]
async fn compare_and_delete_leaves_it_at_the_same_point() {
    let _turn = docker_shared();
    let (first, metrics, key) = short_hold().await;
    let (others, _) = locks(LONG);
    assert_eq!(holder(&key).await.as_deref(), Some(first.owner()));
    sleep_until(first.deadline()).await;
    let second = others.acquire(&key, soon()).await.unwrap();
    assert_eq!(first.release().await, ReleaseOutcome::Superseded);
    assert_eq!(holder(&key).await.as_deref(), Some(second.owner()));
    assert_eq!(metrics.release_by_non_owner.get(), 1);
    assert_eq!(metrics.release_by_non_owner_applied.get(), 0);
    assert_eq!(second.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn get_then_del_without_a_race_tells_what_it_did() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let released = lease.release_unsafe_get_then_del(Box::pin(async {})).await;
    assert_eq!(released, ReleaseOutcome::Released);
    assert_eq!(holder(&key).await, None);
    assert_eq!(metrics.release_by_non_owner.get(), 0);

    // Somebody else was there before the GET: it is told, and nothing is deleted.
    let (first, metrics, key) = short_hold().await;
    sleep_until(first.deadline()).await;
    let second = locks.acquire(&key, soon()).await.unwrap();
    let never = Box::pin(async { panic!("not the holder") });
    let outcome = first.release_unsafe_get_then_del(never).await;
    assert_eq!(outcome, ReleaseOutcome::Superseded);
    assert_eq!(holder(&key).await.as_deref(), Some(second.owner()));
    assert_eq!(metrics.release_by_non_owner_applied.get(), 0);
}

async fn short_hold() -> (Lease, LockMetrics, String) {
    // Longer than a GET takes on a busy machine.
    let (locks, metrics) = locks(2 * SECOND);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    (lease, metrics, key)
}
