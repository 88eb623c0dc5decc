//! Tokens of five nodes: that they only grow, and what happens otherwise.

use super::kit::*;
use crate::support::{docker_alone, docker_shared, redlock_servers};
use fencepost::dlock::{LockClient, LockProblem, TokenScheme};
use fencepost::model::ReleaseOutcome;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::time::Instant;

/// Without any fault: who is asked first and who is busy is enough.
const QUORUMS: [[usize; 3]; 5] = [[0, 1, 2], [0, 3, 4], [0, 1, 2], [0, 3, 4], [1, 2, 3]];

#[tokio::test]
async fn the_highest_counter_runs_backwards_and_the_strict_token_does_not() {
    let Some(_turn) = docker_shared() else { return };
    let naive = tokens_of(TokenScheme::UnsafeMaxOfCounters).await;
    assert_eq!(naive, [1, 2, 3, 4, 3]);
    let strict = tokens_of(TokenScheme::Strict).await;
    assert!(strict.is_sorted_by(|a, b| a < b), "{strict:?}");
}

/// The tokens when exactly these quorums grant, one after another.
async fn tokens_of(scheme: TokenScheme) -> Vec<u64> {
    let (nodes, key) = (Nodes::connect().await, unique_key());
    let mut tokens = Vec::new();
    for quorum in QUORUMS {
        // A client of its own each time: none knows what another has seen.
        let locks = locks_of(&addresses(), LONG, scheme);
        let others: Vec<usize> = (0..5).filter(|node| !quorum.contains(node)).collect();
        for &node in &others {
            nodes.block(node, &key).await;
        }
        let lease = locks.try_acquire(&key).await.unwrap().expect("a quorum");
        tokens.push(lease.fence().0);
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        for node in others {
            nodes.unblock(node, &key).await;
        }
    }
    tokens
}

#[tokio::test]
async fn counters_that_disagree_are_written_back_to() {
    let Some(_turn) = docker_shared() else { return };
    let (locks, nodes, key) = (locks(LONG), Nodes::connect().await, unique_key());
    // Ahead of every clock, and too long for Lua's own way to write it.
    let ahead: u64 = (1 << 52) + 7;
    let () = nodes
        .ask(0, &["SET", &fence_key(&key), &ahead.to_string()])
        .await;
    nodes.block(3, &key).await;
    nodes.block(4, &key).await;
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.fence().0, ahead + 1);
    let counters: Vec<Option<u64>> = nodes.ask_all(&["GET", &fence_key(&key)]).await;
    assert_eq!(counters[..3], [Some(ahead + 1); 3]);
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    // Without the node that was ahead, its token is not forgotten.
    nodes.block(0, &key).await;
    nodes.unblock(3, &key).await;
    let lease = locks_of(&addresses(), LONG, TokenScheme::Strict);
    let lease = lease.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.fence().0, ahead + 2);
}

#[tokio::test]
async fn a_grant_without_a_token_does_not_stand() {
    let Some(_turn) = docker_shared() else { return };
    let (locks, nodes, key) = (locks(LONG), Nodes::connect().await, unique_key());
    let last = (1_u64 << 53) - 1;
    for (node, counter) in [(0, "no number"), (1, &*last.to_string())] {
        let () = nodes.ask(node, &["SET", &fence_key(&key), counter]).await;
    }
    let lease = locks.acquire(&key, soon()).await.expect("three are left");
    assert_eq!(lease.release().await, ReleaseOutcome::Released);

    let () = nodes.ask(2, &["DEL", &fence_key(&key)]).await;
    let () = nodes
        .ask(2, &["LPUSH", &fence_key(&key), "no counter"])
        .await;
    let problem = locks.try_acquire(&key).await.unwrap_err().problem;
    let LockProblem::NoQuorum { failures, .. } = &problem else {
        panic!("{problem}");
    };
    assert!(failures.contains(&addresses()[2]), "{failures}");
    nodes.until_free(&key).await;
}

#[tokio::test]
async fn tokens_go_on_growing_after_every_node_was_restarted() {
    let Some(_turn) = docker_alone() else { return };
    let key = unique_key();
    // Far above the clock, so that only the counters can know.
    let ahead: u64 = 1 << 52;
    {
        let nodes = Nodes::connect().await;
        let ahead = ahead.to_string();
        let _: Vec<String> = nodes.ask_all(&["SET", &fence_key(&key), &ahead]).await;
    }
    let first = locks(SECOND).acquire(&key, soon()).await.unwrap();
    assert!(first.fence().0 > ahead);
    for server in redlock_servers() {
        server.stop();
        server.start();
    }
    let second = locks(SECOND).acquire(&key, soon()).await.unwrap();
    assert!(second.fence() > first.fence());
}

const KEYS: usize = 20;
const RESTARTS: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tokens_only_grow_while_nodes_are_restarted() {
    let Some(_turn) = docker_alone() else { return };
    let soak = std::env::var_os("FENCEPOST_SOAK").is_some();
    let wanted = if soak { 1_000_000 } else { 5_000 };
    // Clients that know nothing of each other take turns on each key.
    let clients: Arc<[LockClient]> = (0..3).map(|_| locks(2 * SECOND)).collect();
    let granted = watch::Sender::new(0);
    let mut chains = tokio::task::JoinSet::new();
    for _ in 0..KEYS {
        let (clients, granted) = (clients.clone(), granted.clone());
        chains.spawn(async move {
            let key = unique_key();
            let mut last = 0;
            for turn in 0..wanted / KEYS {
                let locks = &clients[turn % clients.len()];
                let lease = locks.acquire(&key, Instant::now() + LONG).await.unwrap();
                assert!(lease.fence().0 > last, "{} after {last}", lease.fence());
                last = lease.fence().0;
                lease.release().await;
                granted.send_modify(|granted| *granted += 1);
            }
        });
    }
    let mut progress = granted.subscribe();
    let restarting = async {
        for restart in 1..=RESTARTS {
            let enough = |granted: &usize| *granted >= wanted / (RESTARTS + 1) * restart;
            progress.wait_for(enough).await.unwrap();
            let restarted = tokio::task::spawn_blocking(move || {
                let server = &redlock_servers()[restart % 5];
                server.stop();
                server.start();
            });
            restarted.await.unwrap();
        }
    };
    tokio::join!(restarting, chains.join_all());
    assert_eq!(*granted.borrow(), wanted);
}
