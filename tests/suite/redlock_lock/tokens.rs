//! Tokens of five nodes: that they only grow, and what happens otherwise.

use super::kit::*;
use crate::support::{docker_alone, docker_shared, redlock_servers, tokens_only_grow};
use fencing_lock::ReleaseOutcome;
use fencing_lock::{LockProblem, TokenScheme};

/// Without any fault: who is asked first and who is busy is enough.
const QUORUMS: [[usize; 3]; 5] = [[0, 1, 2], [0, 3, 4], [0, 1, 2], [0, 3, 4], [1, 2, 3]];

#[tokio::test]
async fn the_highest_counter_runs_backwards_and_the_strict_token_does_not() {
    let _turn = docker_shared();
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
    let _turn = docker_shared();
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
    let _turn = docker_shared();
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
    let _turn = docker_alone();
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

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tokens_only_grow_while_nodes_are_restarted() {
    let _turn = docker_alone();
    // Clients that know nothing of each other.
    let clients = (0..3).map(|_| locks(2 * SECOND)).collect();
    let restart = |number: usize| -> Box<dyn FnOnce() + Send> {
        Box::new(move || {
            let server = &redlock_servers()[number % 5];
            server.stop();
            server.start();
        })
    };
    tokens_only_grow(clients, (0..10).map(restart).collect()).await;
}
