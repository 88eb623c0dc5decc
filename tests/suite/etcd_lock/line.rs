//! Standing in line: the order, the bound, and leaving it early.

use super::kit::*;
use crate::support::{docker_shared, times};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{EtcdBackend, EtcdSettings, LockProblem};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

const WAITERS: usize = 50;

#[tokio::test]
async fn fifty_waiters_are_served_in_the_order_in_which_they_came() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    // Half of them share a session with the holder, half have another.
    let sessions = [locks(LONG).0, locks(LONG).0];
    let holder = sessions[0].acquire(&key, soon()).await.unwrap();
    let served = Arc::new(Mutex::new(Vec::new()));
    let mut waiters = tokio::task::JoinSet::new();
    for n in 0..WAITERS {
        let (waiter, served) = (waiter(&sessions[n % 2], &key), served.clone());
        waiters.spawn(async move {
            let lease = waiter.await.unwrap();
            served.lock().unwrap().push((n, lease.fence().0));
            // An answer that comes too late on a busy machine is unknown, and the place is left.
            let released = lease.release().await;
            let left = [ReleaseOutcome::Released, ReleaseOutcome::Unknown];
            assert!(left.contains(&released), "{released:?}");
        });
        until_length(&etcd, &key, n + 2).await;
    }
    let line = line(&etcd, &key).await;
    assert_eq!(holder.release().await, ReleaseOutcome::Released);
    waiters.join_all().await;
    let served = served.lock().unwrap();
    let tokens = line[1..].iter().map(|place| place.create_revision() as u64);
    let in_order: Vec<_> = (0..WAITERS).zip(tokens).collect();
    assert_eq!(*served, in_order);
}

#[tokio::test]
async fn a_full_line_says_so_at_once_and_keeps_nobody() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let settings = EtcdSettings {
        queue_max: 2,
        ..EtcdSettings::default()
    };
    let backend = EtcdBackend::new(&members(), settings).unwrap();
    let (locks, _) = locks_of(Arc::new(backend), LONG);
    let holder = locks.acquire(&key, soon()).await.unwrap();
    let mut waiters = Vec::new();
    for n in 0..2 {
        waiters.push(waiter(&locks, &key));
        until_length(&etcd, &key, n + 2).await;
    }
    let started_at = Instant::now();
    let error = locks.acquire(&key, started_at + LONG).await.unwrap_err();
    let full = LockProblem::QueueFull { waiting: 2, max: 2 };
    assert_eq!(error.problem, full);
    assert!(started_at.elapsed() < LONG / 4);
    assert_eq!(line(&etcd, &key).await.len(), 3);
    assert_eq!(holder.release().await, ReleaseOutcome::Released);
    for next in waiters {
        assert_eq!(
            next.await.unwrap().release().await,
            ReleaseOutcome::Released
        );
    }
}

#[tokio::test]
async fn who_leaves_the_middle_of_a_line_lets_nobody_pass_the_holder() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let (locks, _) = locks(LONG);
    let holder = locks.acquire(&key, soon()).await.unwrap();
    let second = waiter(&locks, &key);
    until_length(&etcd, &key, 2).await;
    let third = waiter(&locks, &key);
    until_length(&etcd, &key, 3).await;
    second.abort();
    until_length(&etcd, &key, 2).await;
    // The third has been told that somebody left once a fourth, who came later
    // and by the same session, stands in line and has left again.
    let fourth = waiter(&locks, &key);
    until_length(&etcd, &key, 3).await;
    fourth.abort();
    until_length(&etcd, &key, 2).await;
    assert!(!third.is_finished());
    assert_eq!(holder.release().await, ReleaseOutcome::Released);
    let third = third.await.unwrap();
    assert_eq!(third.release().await, ReleaseOutcome::Released);
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_waits_and_dropped_leases_leave_no_key() {
    let _turn = docker_shared();
    let (etcd, busy) = (etcd().await, unique_key());
    let (locks, _) = locks(LONG);
    let holder = locks.acquire(&busy, soon()).await.unwrap();
    let prefix = unique_key();
    let mut left = times(1_000, 10_000);
    while left > 0 {
        let mut tries = Vec::new();
        for n in 0..50 {
            // Half of them wait for a lock that is held, half are cut off
            // somewhere in a try that would be granted, or hold already.
            let key = match n % 2 {
                0 => busy.clone(),
                _ => format!("{prefix}-{left}-{n}"),
            };
            let locks = locks.clone();
            tries.push(tokio::spawn(async move {
                let _lease = locks.acquire(&key, Instant::now() + LONG).await;
                std::future::pending::<()>().await;
            }));
        }
        for one in &tries {
            if fastrand::u8(..) < 64 {
                sleep(Duration::from_micros(fastrand::u64(..1_000))).await;
            }
            one.abort();
        }
        left -= tries.len();
    }
    until_length(&etcd, &busy, 1).await;
    assert_eq!(holder.release().await, ReleaseOutcome::Released);
    until_nothing_begins_with(&etcd, &format!("/locks/{prefix}")).await;
    // The line works on, and what was cancelled does not come back.
    let lease = locks.acquire(&busy, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert_eq!(line(&etcd, &busy).await.len(), 0);
}

async fn until_nothing_begins_with(etcd: &etcd_client::Client, prefix: &str) {
    let options = etcd_client::GetOptions::new()
        .with_prefix()
        .with_count_only();
    let gone = async {
        loop {
            let mut kv = etcd.kv_client();
            let answer = kv.get(prefix, Some(options.clone())).await.unwrap();
            if answer.count() == 0 {
                return;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    let gone = tokio::time::timeout(10 * SECOND, gone).await;
    gone.expect("no key stays");
}
