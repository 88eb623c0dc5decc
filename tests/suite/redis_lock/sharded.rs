//! Several Redis servers, of which each key has one.

use super::kit::{LONG, SECOND, soon, waiting_by};
use crate::support::{
    Server, connection_to, contenders_exclude_each_other, docker_shared, own_durable_redis,
    tokens_only_grow,
};
use fencepost::model::WaitPolicy;
use fencing_lock::{LockClient, LockMetrics, LockProblem, LockSettings, ShardedRedisBackend};
use redis::AsyncCommands;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

fn servers() -> Vec<Server> {
    (0..3).map(|_| own_durable_redis()).collect()
}

/// A client of its own, as another process would have one.
fn locks(servers: &[Server], wait: WaitPolicy, ttl: Duration) -> LockClient {
    let addresses = servers.iter().map(|server| server.address.clone());
    let addresses: Vec<String> = addresses.collect();
    let backend = ShardedRedisBackend::new(&addresses, waiting_by(wait)).unwrap();
    let settings = LockSettings { ttl, seed: 1 };
    LockClient::new(Arc::new(backend), settings, LockMetrics::default()).unwrap()
}

async fn names_at(server: &Server) -> BTreeSet<String> {
    let mut redis = connection_to(&server.address).await;
    let names: Vec<String> = redis.keys("fence:*").await.unwrap();
    names.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_program_finds_a_key_on_the_same_server() {
    let _turn = docker_shared();
    let servers = servers();
    for wait in [WaitPolicy::Spin, WaitPolicy::Notify, WaitPolicy::Queue] {
        let clients = || (0..8).map(|_| locks(&servers, wait, LONG)).collect();
        for number in 0..4 {
            contenders_exclude_each_other(&format!("{wait}-{number}"), clients()).await;
        }
    }
    let mut seen = BTreeSet::new();
    for server in &servers {
        for name in names_at(server).await {
            assert!(seen.insert(name.clone()), "{name} is on two servers");
        }
    }
    assert_eq!(seen.len(), 12);
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_grow_over_restarts_and_keys_are_shared_out() {
    let _turn = docker_shared();
    let servers = Arc::new(servers());
    let clients = (0..4).map(|_| locks(&servers, WaitPolicy::Spin, 2 * SECOND));
    let restart = |number: usize| {
        let servers = servers.clone();
        Box::new(move || {
            servers[number].stop();
            servers[number].start();
        }) as Box<dyn FnOnce() + Send>
    };
    tokens_only_grow(clients.collect(), vec![restart(0), restart(1), restart(2)]).await;
    for server in servers.iter() {
        assert!(!names_at(server).await.is_empty(), "{}", server.address);
    }
}

/// A server that is gone takes its own keys along, and no others.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_gone_is_named_and_the_others_go_on() {
    let _turn = docker_shared();
    let servers = servers();
    let client = locks(&servers, WaitPolicy::Spin, LONG);
    servers[1].stop();
    let mut failed = 0;
    for number in 0..12 {
        match client.acquire(&format!("key-{number}"), soon()).await {
            Ok(lease) => drop(lease),
            Err(error) => {
                failed += 1;
                assert!(error.to_string().contains(&servers[1].address), "{error}");
            }
        }
        if failed == 2 {
            break;
        }
    }
    assert!(failed > 0, "no key was on the server that is gone");
    let none = ShardedRedisBackend::new(&[], waiting_by(WaitPolicy::Spin));
    let none = none.map(drop).unwrap_err();
    assert!(matches!(none.problem, LockProblem::BadServers(_)), "{none}");
}
