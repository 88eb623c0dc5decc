//! The lock when nodes are gone, mute or talk nonsense.

use super::kit::*;
use crate::support::{docker_alone, docker_shared, redlock_servers};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{LockClient, LockProblem, LostReason, TokenScheme, keep_renewed};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn a_stopped_and_a_mute_node_do_not_slow_the_others() {
    let _turn = docker_alone();
    // A node that is waited for costs seconds then.
    let locks = locks(40 * SECOND);
    let servers = redlock_servers();
    median_pair(&locks).await;
    let before = median_pair(&locks).await;
    servers[1].stop();
    let one_stopped = median_pair(&locks).await;
    servers[4].freeze();
    let one_mute_too = median_pair(&locks).await;
    servers[4].thaw();
    servers[1].start();
    let after = median_pair(&locks).await;
    println!("{before:?}, stopped {one_stopped:?}, mute {one_mute_too:?}, {after:?}");
    // How much slower exactly is for a benchmark on a quiet machine.
    assert!(one_stopped < SECOND, "{one_stopped:?}, before {before:?}");
    assert!(one_mute_too < SECOND, "{one_mute_too:?}, before {before:?}");
}

/// Of an acquire and a release.
async fn median_pair(locks: &LockClient) -> Duration {
    let key = unique_key();
    let mut took = Vec::new();
    for _ in 0..50 {
        let started_at = Instant::now();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        took.push(started_at.elapsed());
    }
    took.sort_unstable();
    took[took.len() / 2]
}

#[tokio::test]
async fn a_majority_that_is_mute_is_an_error_by_the_deadline() {
    let _turn = docker_alone();
    let (locks, key) = (locks(SECOND), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let servers = redlock_servers();
    for server in &servers[..3] {
        server.freeze();
    }
    // The holder is told by its own clock, whatever its watchdog hears.
    let reason = timeout(5 * SECOND, keep_renewed(&lease, || {})).await;
    let late = Instant::now().saturating_duration_since(lease.deadline());
    assert_eq!(reason, Ok(LostReason::Deadline));
    assert!(late < SECOND, "{late:?} late");

    let started_at = Instant::now();
    let other = format!("{key}-other");
    let problem = locks.try_acquire(&other).await.unwrap_err().problem;
    let LockProblem::NoQuorum {
        answered: 2,
        failures,
        ..
    } = &problem
    else {
        panic!("{problem}");
    };
    for server in &servers[..3] {
        assert!(failures.contains(&server.address), "{failures}");
    }
    assert!(started_at.elapsed() < SECOND, "a tenth of the TTL");

    let deadline = Instant::now() + SECOND;
    let error = locks.acquire(&other, deadline).await.unwrap_err();
    let late = Instant::now().saturating_duration_since(deadline);
    assert!(late < SECOND, "{late:?} late");
    let LockProblem::Timeout { last: Some(_), .. } = &error.problem else {
        panic!("{error}");
    };
    let released = timeout(5 * SECOND, lease.release()).await;
    assert_ne!(released.expect("no hang"), ReleaseOutcome::Released);

    for server in &servers[..3] {
        server.thaw();
    }
    let lease = locks.acquire(&other, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    // Requests that lay in the frozen nodes were undone by what lay behind them
    // or run out: a node that answers again has read them all.
    Nodes::connect().await.until_free(&format!("{key}*")).await;
}

#[tokio::test]
async fn a_lock_is_renewed_and_released_without_one_of_its_nodes() {
    let _turn = docker_alone();
    let (locks, key) = (locks(3 * SECOND), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    let servers = redlock_servers();
    servers[0].stop();
    let mut renewals = 0;
    let lost = timeout(4 * SECOND, keep_renewed(&lease, || renewals += 1)).await;
    assert!(lost.is_err(), "lost: {lost:?}");
    assert!(renewals >= 2, "{renewals}");
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    servers[0].start();
    // The node that is back takes part again.
    let key = unique_key();
    let nodes = Nodes::connect().await;
    nodes.block(1, &key).await;
    nodes.block(2, &key).await;
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(nodes.held_by(&key, lease.owner()).await, QUORUM);
}

#[tokio::test]
async fn a_lease_whose_holder_stops_renewing_is_lost_by_its_own_clock() {
    let _turn = docker_shared();
    let lease = locks(SECOND).acquire(&unique_key(), soon()).await.unwrap();
    // The drift is taken off: a hundredth of the TTL and two milliseconds.
    let believed = lease.deadline() - lease.acquired_at();
    assert_eq!(believed, Duration::from_millis(988));
}

#[tokio::test]
async fn nodes_that_are_not_there_are_named_by_the_deadline() {
    let _turn = docker_shared();
    let mut servers = addresses();
    for (node, port) in [(0, 1), (2, 2), (4, 3)] {
        servers[node] = format!("127.0.0.1:{port}");
    }
    let locks = locks_of(&servers, SECOND, TokenScheme::Strict);
    let deadline = Instant::now() + SECOND;
    let error = locks.acquire(&unique_key(), deadline).await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::Timeout { .. }));
    assert!(Instant::now() < deadline + SECOND);
    let error = locks.try_acquire(&unique_key()).await.unwrap_err();
    assert!(matches!(error.problem, LockProblem::NoQuorum { .. }));
    for missing in [0, 2, 4] {
        assert!(
            error.problem.to_string().contains(&servers[missing]),
            "{error}"
        );
    }
    // Two are none too many.
    servers[0] = addresses()[0].clone();
    let locks = locks_of(&servers, SECOND, TokenScheme::Strict);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn nodes_that_talk_nonsense_have_no_vote() {
    let _turn = docker_shared();
    let mut servers = addresses();
    servers[0] = babbler().await;
    servers[1] = babbler().await;
    let locks = locks_of(&servers, SECOND, TokenScheme::Strict);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    servers[2] = babbler().await;
    let locks = locks_of(&servers, SECOND, TokenScheme::Strict);
    let key = unique_key();
    let problem = locks.try_acquire(&key).await.unwrap_err().problem;
    let LockProblem::NoQuorum { failures, .. } = &problem else {
        panic!("{problem}");
    };
    assert!(failures.contains(&servers[2]), "{failures}");
    Nodes::connect().await.until_free(&key).await;
}

/// A server that is no Redis.
async fn babbler() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                while stream.write_all(b"hello, I am no node\r\n").await.is_ok() {
                    sleep(Duration::from_millis(1)).await;
                }
            });
        }
    });
    address
}
