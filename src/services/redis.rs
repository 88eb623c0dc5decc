//! One Redis.

use super::floor::{ANSWER_WITHIN, BareWrites, Floor};
use super::observe::observe_redis;
use super::{Defect, Keyspace, LockOptions, LockServers, Opened, Program, Readback, Service, only};
use crate::model::{ServicePlan, joined};
use ::redis::{AsyncConnectionConfig, Cmd, cmd};
use fencing_lock::servers::bounded_redis::{self as bounded, RedisConnection};
use fencing_lock::servers::{redis_client, redis_connect_problem, redis_problem};
use fencing_lock::{LockProblem, RedisBackend, RedisSettings};
use futures_util::future::try_join_all;
use std::net::SocketAddr;
use std::sync::Arc;

pub(super) const REDIS: Program = Program {
    name: "redis",
    about: "A Redis; several are the independent nodes of Redlock",
    own_keys: "lock:",
    is_cluster: false,
    has_places: false,
    answers: Readback::Redis,
    hints,
    observe: |watch, layout| Box::pin(observe_redis(watch, layout)),
};

pub(super) const ONE_REDIS: Service = Service {
    group: "redis",
    servers: LockServers {
        program: &REDIS,
        at_least: 1,
        at_most: Some(1),
        words: "one Redis",
        topology: "redis",
    },
    has_choices: true,
    has_lock_delay: false,
    keyspace: Some(Keyspace::Redis),
    in_order: |lock| lock.wait.is_in_order(),
    plan: ServicePlan::ONE_SERVER,
    tokens: "a counter in memory",
    floor: Floor {
        words: "SET, DEL",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict: |_| None,
    open,
};

fn open(options: &LockOptions, servers: &[String], _defect: Option<Defect>) -> Opened {
    let server = only("redis", servers)?;
    let settings = RedisSettings {
        wait: options.wait,
        fence_floor: options.fence_floor,
        #[cfg(debug_assertions)]
        mutant: _defect,
        ..RedisSettings::default()
    };
    Ok(Arc::new(RedisBackend::new(server, settings)?))
}

/// The key is set with a TTL, as that of a lock is, on every node at once.
pub(super) async fn bare_writes(servers: &[String]) -> Result<BareWrites, LockProblem> {
    let config = || AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_WITHIN));
    let connect = async |server: &String| {
        let client = redis_client(server)?;
        let connected = bounded::connect(&client, config(), ANSWER_WITHIN).await;
        connected.map_err(redis_connect_problem)
    };
    let nodes = try_join_all(servers.iter().map(connect)).await?;
    let mut set = cmd("SET");
    set.arg(BARE_KEY).arg("held").arg("PX").arg(30_000);
    let mut delete = cmd("DEL");
    delete.arg(BARE_KEY);
    Ok(Box::new(move || {
        let (nodes, set, delete) = (nodes.clone(), set.clone(), delete.clone());
        Box::pin(async move {
            everywhere(&nodes, &set).await?;
            everywhere(&nodes, &delete).await
        })
    }))
}

const BARE_KEY: &str = "fencepost:floor";

async fn everywhere(nodes: &[RedisConnection], command: &Cmd) -> Result<(), LockProblem> {
    let ask = |node: &RedisConnection| {
        let mut node = node.clone();
        async move {
            let answer = command.query_async::<()>(&mut *node).await;
            answer.map_err(redis_problem)
        }
    };
    try_join_all(nodes.iter().map(ask)).await.map(|_| ())
}

fn hints(servers: &[SocketAddr]) -> Vec<String> {
    let all = joined(servers, ",");
    let first = servers.first();
    let monitor = first.map(|server| format!("redis-cli -p {} monitor", server.port()));
    let contend = format!("fencepost contend --redis {all} --duration 5s");
    monitor.into_iter().chain([contend]).collect()
}
