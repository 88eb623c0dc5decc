//! One owner that takes its lock again: one grant, one token, freed at zero.

use super::kit::*;
use crate::support::docker_shared;
use fencing_lock::ReleaseOutcome;
use fencing_lock::{ReentrantLocks, Released};
use std::time::Duration;
use tokio::time::{sleep_until, timeout};

#[tokio::test]
async fn a_nested_hold_keeps_the_token_and_the_last_release_frees() {
    let _turn = docker_shared();
    let (client, metrics) = locks(LONG);
    let locks = ReentrantLocks::new(client.clone());
    let key = unique_key();
    let outer = locks.acquire(&key, soon()).await.unwrap();
    let middle = locks.acquire(&key, soon()).await.unwrap();
    let inner = locks.clone().acquire(&key, soon()).await.unwrap();
    assert_eq!(
        (inner.fence(), inner.owner()),
        (outer.fence(), outer.owner())
    );
    assert_eq!(inner.holds(), 3);
    let innermost = inner.reenter().unwrap();
    assert_eq!((innermost.fence(), inner.holds()), (outer.fence(), 4));
    assert_eq!(innermost.into_lease().unwrap_err(), 3);
    assert_eq!(metrics.acquire_attempts.get(), 1, "a re-entry asks nobody");

    assert_eq!(inner.release().await, Released::StillHeld { holds: 2 });
    drop(middle);
    assert_eq!(outer.holds(), 1);
    assert!(client.try_acquire(&key).await.unwrap().is_none());
    let freed = outer.release().await;
    assert_eq!(freed, Released::Last(ReleaseOutcome::Released));
    assert_eq!(holder(&key).await, None);

    let again = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(metrics.acquire_attempts.get(), 3);
    drop(again);
    until_free(&key).await;
}

#[tokio::test]
async fn a_renewal_of_one_hold_prolongs_all_and_a_loss_ends_all() {
    let _turn = docker_shared();
    let (client, _) = locks(2 * SECOND);
    let locks = ReentrantLocks::new(client);
    let key = unique_key();
    let outer = locks.acquire(&key, soon()).await.unwrap();
    let inner = locks.acquire(&key, soon()).await.unwrap();
    let before = outer.deadline();
    inner.renew().await.unwrap();
    assert!(outer.deadline() > before);

    sleep_until(outer.deadline()).await;
    assert!(timeout(5 * SECOND, inner.lost()).await.is_ok());
    assert!(outer.is_lost());
    assert!(inner.reenter().is_err());
    let next = locks.acquire(&key, soon()).await.unwrap();
    assert!(
        next.fence() > outer.fence(),
        "a lost hold is not re-entered"
    );
    assert_eq!(inner.release().await, Released::StillHeld { holds: 1 });
    let late = outer.release().await;
    assert_eq!(late, Released::Last(ReleaseOutcome::Superseded));
    assert_eq!(holder(&key).await.as_deref(), Some(next.owner()));
}

#[tokio::test]
async fn one_owner_does_not_wait_for_itself_and_others_do() {
    let _turn = docker_shared();
    let (client, metrics) = locks(LONG);
    let locks = ReentrantLocks::new(client.clone());
    let key = unique_key();
    let together = (0..20).map(|_| locks.acquire(&key, soon()));
    let holds = futures_util::future::try_join_all(together).await.unwrap();
    assert_eq!(holds[0].holds(), 20);
    assert_eq!(metrics.acquire_successes.get(), 1);

    let others = ReentrantLocks::new(client);
    let deadline = tokio::time::Instant::now() + Duration::from_millis(100);
    assert!(others.acquire(&key, deadline).await.is_err());
}
