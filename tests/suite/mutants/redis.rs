use crate::redis_lock::kit::*;
use crate::support::{Wire, docker_shared, redis_address};
use fencepost::model::{FenceFloor, WaitPolicy};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{LockClient, LostReason, Mutant, RedisSettings, RenewError};
use redis::AsyncCommands;

const WITHOUT_LINE: [WaitPolicy; 2] = [WaitPolicy::Spin, WaitPolicy::Notify];

#[tokio::test]
async fn a_token_taken_before_the_grant_comes_after_a_younger_one() {
    let _turn = docker_shared();
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
    let _turn = docker_shared();
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
    let _turn = docker_shared();
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
    let _turn = docker_shared();
    let locks = client(WaitPolicy::Spin, Some(Mutant::RenewRecreates));
    let key = unique_key();
    let first = locks.acquire(&key, soon()).await.unwrap();
    runs_out(&key).await;
    let second = locks.acquire(&key, soon()).await.unwrap();
    assert!(first.renew().await.is_err());
    assert_eq!(holder(&key).await.as_deref(), Some(second.owner()));
}

#[tokio::test]
async fn a_lock_that_grants_everybody_has_two_holders() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        for mutant in [None, Some(Mutant::GrantEverybody)] {
            let key = unique_key();
            let [first, second] = [(); 2].map(|()| client(wait, mutant));
            let first = first.acquire(&key, soon()).await.unwrap();
            let second = second.try_acquire(&key).await.unwrap();
            assert_eq!(second.is_some(), mutant.is_some());
            assert!(!first.is_lost());
            let granted_last = second.as_ref().unwrap_or(&first);
            let holder = holder(&key).await;
            assert_eq!(holder.as_deref(), Some(granted_last.owner()));
            assert!(second.is_none_or(|second| second.fence() > first.fence()));
        }
    }
}

#[tokio::test]
async fn one_who_enters_without_the_lock_is_not_its_holder_at_the_server() {
    let _turn = docker_shared();
    for wait in WITHOUT_LINE {
        for mutant in [None, Some(Mutant::EnterWithoutLock)] {
            let key = unique_key();
            let [first, second] = [(); 2].map(|()| client(wait, mutant));
            let first = first.acquire(&key, soon()).await.unwrap();
            let second = second.try_acquire(&key).await.unwrap();
            assert_eq!(second.is_some(), mutant.is_some());
            assert_eq!(holder(&key).await.as_deref(), Some(first.owner()));
            assert!(second.is_none_or(|second| second.fence() > first.fence()));
        }
    }
}

#[tokio::test]
async fn a_lock_that_never_expires_has_no_end_at_the_server() {
    let _turn = docker_shared();
    let mut redis = redis_connection().await;
    for wait in WaitPolicy::ALL {
        for mutant in [None, Some(Mutant::NeverExpire)] {
            let (locks, key) = (client(wait, mutant), unique_key());
            let lease = locks.acquire(&key, soon()).await.unwrap();
            let name = format!("lock:{{{key}}}");
            let granted: i64 = redis.pttl(&name).await.unwrap();
            lease.renew().await.unwrap();
            let renewed: i64 = redis.pttl(&name).await.unwrap();
            for left_ms in [granted, renewed] {
                assert_eq!(left_ms == NO_END, mutant.is_some(), "{left_ms}");
            }
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
        }
    }
}

/// What PTTL answers about a key without one.
const NO_END: i64 = -1;

#[tokio::test]
async fn a_lock_that_is_handed_on_without_an_end_never_expires() {
    let _turn = docker_shared();
    let mut redis = redis_connection().await;
    for mutant in [None, Some(Mutant::NeverExpire)] {
        let key = unique_key();
        let [first, second] = [(); 2].map(|()| client(WaitPolicy::Queue, mutant));
        let lease = first.acquire(&key, soon()).await.unwrap();
        let waiting = {
            let key = key.clone();
            tokio::spawn(async move { second.acquire(&key, soon()).await.unwrap() })
        };
        until_in_line(&mut redis, &key, 1).await;
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        let lease = waiting.await.unwrap();
        let left_ms: i64 = redis.pttl(format!("lock:{{{key}}}")).await.unwrap();
        assert_eq!(left_ms == NO_END, mutant.is_some(), "{left_ms}");
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn tokens_that_run_backwards_get_lower_with_every_grant() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        for fence_floor in [FenceFloor::None, FenceFloor::ServerClock] {
            for mutant in [None, Some(Mutant::TokensBackwards)] {
                let settings = RedisSettings {
                    mutant,
                    fence_floor,
                    ..waiting_by(wait)
                };
                let (locks, _) = locks_at(&redis_address(), settings, LONG);
                let (key, mut tokens) = (unique_key(), Vec::new());
                for _ in 0..3 {
                    let lease = locks.acquire(&key, soon()).await.unwrap();
                    tokens.push(lease.fence());
                    assert_eq!(lease.release().await, ReleaseOutcome::Released);
                }
                let grow = tokens.is_sorted_by(|one, next| one < next);
                let fall = tokens.is_sorted_by(|one, next| one > next);
                assert_eq!((grow, fall), (mutant.is_none(), mutant.is_some()));
            }
        }
    }
}

#[tokio::test]
async fn a_hand_off_that_is_heard_of_too_late_is_believed_in() {
    let _turn = docker_shared();
    let mut redis = redis_connection().await;
    for mutant in [None, Some(Mutant::LateHandOff)] {
        let key = unique_key();
        let held = client(WaitPolicy::Queue, None);
        let held = held.acquire(&key, soon()).await.unwrap();
        let wire = Wire::to(redis_address()).await;
        let settings = RedisSettings {
            mutant,
            response_timeout: LONG,
            ..waiting_by(WaitPolicy::Queue)
        };
        let (locks, _) = locks_at(&wire.address, settings, SECOND);
        let waiting = {
            let key = key.clone();
            tokio::spawn(async move { locks.acquire(&key, soon() + LONG).await.unwrap() })
        };
        until_in_line(&mut redis, &key, 1).await;
        wire.hold();
        held.release().await;
        // The time of the hand-off is over then.
        let other = client(WaitPolicy::Queue, None);
        let other = other.acquire(&key, soon()).await.unwrap();
        wire.let_go();
        if mutant.is_some() {
            let lease = waiting.await.unwrap();
            assert!(lease.fence() < other.fence());
            assert_eq!(holder(&key).await.as_deref(), Some(other.owner()));
            continue;
        }
        until_in_line(&mut redis, &key, 1).await;
        let token = other.fence();
        assert_eq!(other.release().await, ReleaseOutcome::Released);
        assert!(waiting.await.unwrap().fence() > token);
    }
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
