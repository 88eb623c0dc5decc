//! Real lock servers under a skewed clock.

use super::kit::*;
use crate::support::{connection_to, docker_shared, own_etcd, own_postgres, own_redis};
use fencepost::clock::{ClockName, Deed, Offset};
use fencing_lock::servers::{PostgresConnection, connect_postgres};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::spawn_blocking;
use vdso_clock::{self as clock, Clock};

const CYCLES: u32 = 100;
const CONNECTIONS: usize = 4;
const COMMANDS_AT_ONCE: usize = 50;

/// By how much the server's TIME is ahead of ours.
async fn ahead_ms(connection: &mut MultiplexedConnection) -> i64 {
    let time = redis::cmd("TIME").query_async(connection).await;
    let (seconds, micros): (i64, i64) = time.unwrap();
    seconds * 1_000 + micros / 1_000 - host_ms()
}

#[tokio::test]
async fn redis_expires_keys_by_the_clock_that_it_is_given() {
    let _turn = docker_shared();
    if !is_root() {
        return;
    }
    let host = HostClock::look();
    let server = own_redis();
    let pid = pid_of(&server);
    let mut redis = connection_to(&server.address).await;
    let _: () = redis.pset_ex("long", 1, 120_000).await.unwrap();
    let _: () = redis.pset_ex("short", 1, 14_000).await.unwrap();

    clock::set(pid, Clock::Realtime, 15 * SECOND_NS).unwrap();
    assert_near("TIME", ahead_ms(&mut redis).await, 15_000);
    let left: i64 = redis.pttl("long").await.unwrap();
    assert_near("PTTL", left, 105_000);
    let gone: Option<i64> = redis.get("short").await.unwrap();
    assert_eq!(gone, None, "it lived for longer than its TTL");

    clock::set(pid, Clock::Realtime, -60 * SECOND_NS).unwrap();
    assert_near("TIME", ahead_ms(&mut redis).await, -60_000);
    let left: i64 = redis.pttl("long").await.unwrap();
    assert_near("PTTL", left, 180_000);

    clock::undo(pid).unwrap();
    assert_near("TIME", ahead_ms(&mut redis).await, 0);
    assert_restored(pid);
    host.assert_unchanged();
}

#[tokio::test]
async fn redis_drifts_and_the_drift_can_be_measured() {
    let _turn = docker_shared();
    if !is_root() {
        return;
    }
    let server = own_redis();
    let pid = pid_of(&server);
    let mut redis = connection_to(&server.address).await;
    clock::drift(pid, Clock::Realtime, 1_000_000).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let told = clock::show(pid).unwrap().realtime;
    assert!(told.offset_ns >= 2 * SECOND_NS, "{told:?}");
    let ahead = ahead_ms(&mut redis).await;
    assert_near("TIME", ahead, told.offset_ns / 1_000_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_survives_a_hundred_patches_under_load() {
    let _turn = docker_shared();
    if !is_root() {
        return;
    }
    let server = own_redis();
    let pid = pid_of(&server);
    let over = Arc::new(AtomicBool::new(false));
    let load = (0..CONNECTIONS).map(|number| {
        let (address, over) = (server.address.clone(), over.clone());
        tokio::spawn(async move {
            let mut redis = connection_to(&address).await;
            let mut commands = 0;
            while !over.load(Ordering::Relaxed) {
                let mut many = redis::pipe();
                for _ in 0..COMMANDS_AT_ONCE {
                    many.incr(number, 1);
                }
                let counts: Vec<u64> = many.query_async(&mut redis).await.unwrap();
                commands += counts.len() as u64;
                assert_eq!(counts.last(), Some(&commands), "each command was done once");
            }
            commands
        })
    });
    let load: Vec<_> = load.collect();
    let patched = spawn_blocking(move || {
        for cycle in 0..CYCLES {
            let offset = if cycle % 2 == 0 { 15 } else { -60 };
            clock::set(pid, Clock::Realtime, offset * SECOND_NS).unwrap();
            clock::undo(pid).unwrap();
        }
    });
    patched.await.unwrap();
    over.store(true, Ordering::Relaxed);
    for connection in load {
        assert!(connection.await.unwrap() > 0);
    }
    assert_eq!(pid_of(&server), pid, "it is still the same process");
    assert_restored(pid);
    let mut redis = connection_to(&server.address).await;
    assert_near("TIME", ahead_ms(&mut redis).await, 0);
}

/// By how much the clock of a session is ahead of ours.
async fn session_ahead_ms(session: &PostgresConnection) -> i64 {
    let time = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint";
    let row = session.query_typed_one(time, &[]).await.unwrap();
    row.get::<_, i64>(0) - host_ms()
}

#[tokio::test]
async fn every_session_of_a_postgres_has_the_clock_of_its_family() {
    let _turn = docker_shared();
    if !is_root() {
        return;
    }
    let server = own_postgres();
    let pid = pid_of(&server);
    let session = || connect_postgres(&server.address, Duration::from_secs(5), |_| {});
    let before = session().await.unwrap();
    let ahead = Deed::Set(vec![(ClockName::Realtime, Offset(60 * SECOND_NS))]);
    ahead.do_to_family(pid).unwrap();
    let during = session().await.unwrap();
    for session in [&before, &during] {
        assert_near("a session", session_ahead_ms(session).await, 60_000);
    }
    Deed::Undo.do_to_family(pid).unwrap();
    for session in [&before, &during, &session().await.unwrap()] {
        assert_near("a session", session_ahead_ms(session).await, 0);
    }
    assert_restored(pid);
}

#[tokio::test]
async fn etcd_counts_its_leases_down_by_the_monotonic_clock() {
    let _turn = docker_shared();
    if !is_root() {
        return;
    }
    let server = own_etcd();
    let pid = pid_of(&server);
    let mut etcd = etcd_client::Client::connect([&server.address], None)
        .await
        .unwrap();
    let lease = etcd.lease_grant(60, None).await.unwrap().id();
    let before = etcd.lease_time_to_live(lease, None).await.unwrap().ttl();
    assert!(before >= 55, "{before} s");

    clock::set(pid, Clock::Realtime, 15 * SECOND_NS).unwrap();
    let realtime = etcd.lease_time_to_live(lease, None).await.unwrap().ttl();
    assert!((before - 5..=before).contains(&realtime), "{realtime} s");

    clock::set(pid, Clock::Monotonic, 15 * SECOND_NS).unwrap();
    let after = etcd.lease_time_to_live(lease, None).await.unwrap().ttl();
    assert!((before - 20..=before - 15).contains(&after), "{after} s");

    // The lease goes on: what was taken from it ends it early.
    clock::set(pid, Clock::Monotonic, 61 * SECOND_NS).unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(10), async {
        while etcd.lease_time_to_live(lease, None).await.unwrap().ttl() > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    ended.await.expect("the lease ended early");
}
