use crate::redis_lock::kit::*;
use crate::support::{docker_shared, redis_address};
use fencepost::dlock::{LockClient, LostReason, Mutant, RedisSettings, RenewError};
use fencepost::model::{ReleaseOutcome, WaitPolicy};
use redis::AsyncCommands;

const WITHOUT_LINE: [WaitPolicy; 2] = [WaitPolicy::Spin, WaitPolicy::Notify];

#[tokio::test]
async fn a_token_taken_before_the_grant_comes_after_a_younger_one() {
    let Some(_turn) = docker_shared() else { return };
    for wait in WITHOUT_LINE {
        assert_eq!(tokens_of_grants(wait, None).await, [1, 2, 3]);
        let mutant = Some(Mutant::TokenBeforeGrant);
        assert_eq!(tokens_of_grants(wait, mutant).await, [1, 3, 2]);
    }
}

/// In the order of the grants, where who asked second is granted last.
async fn tokens_of_grants(wait: WaitPolicy, mutant: Option<Mutant>) -> Vec<u64> {
    let key = unique_key();
    let [first, second, third] = [(); 3].map(|()| client(wait, mutant));
    let lease = first.acquire(&key, soon()).await.unwrap();
    assert!(second.try_acquire(&key).await.unwrap().is_none());
    let mut tokens = vec![lease.fence().0];
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    for locks in [third, second] {
        let lease = locks.try_acquire(&key).await.unwrap().expect("free");
        tokens.push(lease.fence().0);
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    tokens
}

#[tokio::test]
async fn a_release_without_compare_frees_the_lock_of_another() {
    let Some(_turn) = docker_shared() else { return };
    for wait in WITHOUT_LINE {
        assert!(a_late_release_leaves_the_next_holder(wait, None).await);
        let mutant = Some(Mutant::ReleaseWithoutCompare);
        assert!(!a_late_release_leaves_the_next_holder(wait, mutant).await);
    }
}

async fn a_late_release_leaves_the_next_holder(wait: WaitPolicy, mutant: Option<Mutant>) -> bool {
    let (locks, key) = (client(wait, mutant), unique_key());
    let first = locks.acquire(&key, soon()).await.unwrap();
    runs_out(&key).await;
    let second = locks.acquire(&key, soon()).await.unwrap();
    first.release().await;
    holder(&key).await.as_deref() == Some(second.owner())
}

#[tokio::test]
async fn a_renewal_that_re_creates_brings_a_superseded_holder_back() {
    let Some(_turn) = docker_shared() else { return };
    for wait in WaitPolicy::ALL {
        for mutant in [None, Some(Mutant::RenewRecreates)] {
            let (locks, key) = (client(wait, mutant), unique_key());
            let first = locks.acquire(&key, soon()).await.unwrap();
            runs_out(&key).await;
            let second = locks.acquire(&key, soon()).await.unwrap();
            assert!(second.fence() > first.fence());
            assert_eq!(second.release().await, ReleaseOutcome::Released);
            let renewed = first.renew().await;
            let holder = holder(&key).await;
            if mutant.is_some() {
                assert!(renewed.is_ok(), "{renewed:?}");
                assert_eq!(holder.as_deref(), Some(first.owner()));
            } else {
                assert!(
                    matches!(renewed, Err(RenewError::Lost(LostReason::Expired))),
                    "{renewed:?}"
                );
                assert_eq!(holder, None);
            }
        }
    }
}

#[tokio::test]
async fn a_renewal_that_re_creates_takes_the_lock_from_nobody() {
    let Some(_turn) = docker_shared() else { return };
    let locks = client(WaitPolicy::Spin, Some(Mutant::RenewRecreates));
    let key = unique_key();
    let first = locks.acquire(&key, soon()).await.unwrap();
    runs_out(&key).await;
    let second = locks.acquire(&key, soon()).await.unwrap();
    assert!(first.renew().await.is_err());
    assert_eq!(holder(&key).await.as_deref(), Some(second.owner()));
}

/// As another process would have one.
fn client(wait: WaitPolicy, mutant: Option<Mutant>) -> LockClient {
    let settings = RedisSettings {
        mutant,
        ..waiting_by(wait)
    };
    locks_at(&redis_address(), settings, LONG).0
}

/// The TTL is over by the server's clock, and not yet by the holder's.
async fn runs_out(key: &str) {
    let mut redis = redis_connection().await;
    let deleted: usize = redis.del(format!("lock:{{{key}}}")).await.unwrap();
    assert_eq!(deleted, 1);
}
