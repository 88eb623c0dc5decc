//! The locks while members freeze, die and come back.

use super::kit::*;
use crate::support::{docker_alone, etcd_servers, tokens_only_grow};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{LockClient, LostReason};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// An election takes one to two seconds; after that a session has to be alive.
const TTL: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tokens_only_grow_while_single_members_restart() {
    let _turn = docker_alone();
    // Sessions that know nothing of each other.
    let clients = (0..3).map(|_| locks(TTL).0).collect();
    let restart = |index: usize| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            etcd_servers()[index].stop();
            etcd_servers()[index].start();
        })
    };
    let restarts = [leader().await, 0, 1, 2].map(restart);
    tokens_only_grow(clients, restarts.into()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_one_member_may_be_gone_or_frozen() {
    let _turn = docker_alone();
    let (locks, _) = locks(TTL);
    round(&locks).await;
    for member in etcd_servers() {
        member.stop();
        round(&locks).await;
        // One who comes only now has never seen the member alive.
        round(&kit_locks()).await;
        member.start();
        round(&locks).await;

        member.freeze();
        round(&locks).await;
        round(&kit_locks()).await;
        member.thaw();
        round(&locks).await;
    }
}

fn kit_locks() -> LockClient {
    locks(TTL).0
}

/// A lock is granted and released, in the time that an election and a few
/// members that have to be asked in vain may take.
async fn round(locks: &LockClient) {
    let started_at = Instant::now();
    let lease = locks.acquire(&unique_key(), started_at + LONG).await;
    let lease = lease.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    let took = started_at.elapsed();
    assert!(took < 6 * SECOND, "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_gets_its_lock_although_the_leader_was_killed() {
    let _turn = docker_alone();
    let (etcd, key) = (etcd().await, unique_key());
    let (holders, _) = locks(TTL);
    let (waiters, _) = locks(TTL);
    let holder = holders.acquire(&key, soon()).await.unwrap();
    let mut waiting = Vec::new();
    for n in 0..3 {
        waiting.push(waiter(&waiters, &key));
        until_length(&etcd, &key, n + 2).await;
    }
    let leader = &etcd_servers()[leader().await];
    leader.stop();
    // Whether the dead leader carried it out may be unknown; it happens anyway.
    let released = holder.release().await;
    let is_plausible = [ReleaseOutcome::Released, ReleaseOutcome::Unknown].contains(&released);
    assert!(is_plausible, "{released:?}");
    let mut last = 0;
    for next in waiting {
        // In the order in which they came: nobody lost its place.
        let lease = timeout(10 * SECOND, next).await.unwrap().unwrap();
        assert!(lease.fence().0 > last);
        last = lease.fence().0;
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    leader.start();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_gets_its_lock_although_its_member_froze() {
    let _turn = docker_alone();
    for frozen in 0..3 {
        let (etcd, key) = (etcd().await, unique_key());
        let (locks, _) = locks(LONG);
        let holder = locks.acquire(&key, soon()).await.unwrap();
        let waiter = waiter(&locks, &key);
        until_length(&etcd, &key, 2).await;
        etcd_servers()[frozen].freeze();
        let _unknown_if_its_answer_was_lost = holder.release().await;
        let lease = timeout(10 * SECOND, waiter).await.unwrap().unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        etcd_servers()[frozen].thaw();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_is_told_by_its_deadline_while_every_member_is_frozen() {
    let _turn = docker_alone();
    let (locks, _) = locks(2 * SECOND);
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(locks.acquire(&unique_key(), soon()).await.unwrap());
    }
    for member in etcd_servers() {
        member.freeze();
    }
    for lease in &leases {
        let reason = timeout(LONG, lease.lost()).await.unwrap();
        let late = Instant::now().saturating_duration_since(lease.deadline());
        assert_eq!(reason, LostReason::Deadline);
        assert!(late < SECOND, "{late:?}");
    }
    for member in etcd_servers() {
        member.thaw();
    }
    let lease = locks.acquire(leases[0].key(), soon()).await.unwrap();
    assert!(lease.fence() > leases[0].fence());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

/// The requests of these attempts lie in the members' sockets, and are carried
/// out when nobody waits for them any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_frozen_members_do_later_leaves_no_lock_behind() {
    let _turn = docker_alone();
    let (locks, _) = locks(LONG);
    round(&locks).await;
    let keys: Vec<String> = (0..20).map(|_| unique_key()).collect();
    let held = unique_key();
    let lease = locks.acquire(&held, soon()).await.unwrap();
    for member in etcd_servers() {
        member.freeze();
    }
    let mut given_up = tokio::task::JoinSet::new();
    for key in keys.clone() {
        let locks = locks.clone();
        given_up.spawn(async move {
            let deadline = Instant::now() + Duration::from_millis(fastrand::u64(1..2_500));
            assert!(locks.acquire(&key, deadline).await.is_err());
        });
    }
    given_up.join_all().await;
    // A release that nobody answers is made good later as well.
    assert_eq!(lease.release().await, ReleaseOutcome::Unknown);
    for member in etcd_servers() {
        member.thaw();
    }
    leader().await;
    let etcd = etcd().await;
    // Every member has answered since, behind whatever lay in its sockets.
    for member in etcd_servers() {
        let mut member = etcd_client::Client::connect([&member.address], None)
            .await
            .unwrap();
        member.get("any", None).await.unwrap();
    }
    for key in keys.iter().chain([&held]) {
        until_length(&etcd, key, 0).await;
    }
    for key in keys.iter().chain([&held]) {
        let lease = locks.try_acquire(key).await.unwrap().expect("free");
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}
