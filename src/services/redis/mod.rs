//! One Redis, or several that share out the keys.

mod bystander;
mod guest;
mod observer;
mod questions;
mod rows;

use super::floor::{ANSWER_WITHIN, BareWrites, Floor};
use super::redlock::NODES;
use super::{Defect, Keyspace, LockOptions, LockServers, Opened, Program, Service, only};
use crate::model::ServicePlan;
use ::redis::{AsyncConnectionConfig, Cmd, cmd};
pub use bystander::RedisBystander;
use fencing_lock::servers::bounded_redis::{self as bounded, RedisConnection};
use fencing_lock::servers::{redis_client, redis_connect_problem, redis_problem};
use fencing_lock::{Env, LockProblem, RedisBackend, RedisSettings, ShardedRedisBackend};
use futures_util::future::try_join_all;
use observer::observe_redis;
use std::sync::Arc;

pub(super) const REDIS: Program = Program {
    name: "redis",
    about: "A Redis; several are the independent nodes of Redlock",
    own_keys: "lock:",
    is_cluster: false,
    has_places: false,
    answers: &questions::RedisServer,
    look: |server| format!("redis-cli -p {} monitor", server.port()),
    guest: Some(&guest::GUEST),
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

/// The same servers as those of Redlock, and no majority of them.
pub(super) const SHARDED: Service = Service {
    group: "redis-sharded",
    servers: NODES,
    keyspace: None,
    floor: Floor {
        words: "SET, DEL on one of the servers",
        open: |servers| Box::pin(bare_writes(servers.get(..1).unwrap_or_default())),
    },
    tokens: "a counter in memory for each key, on one of the servers",
    open: |options, servers, defect, env| {
        let settings = settings(options, defect);
        let backend = ShardedRedisBackend::with_env(servers, settings, env)?;
        Ok(Arc::new(backend))
    },
    ..ONE_REDIS
};

fn open(options: &LockOptions, servers: &[String], defect: Option<Defect>, env: Env) -> Opened {
    let server = only("redis", servers)?;
    let settings = settings(options, defect);
    Ok(Arc::new(RedisBackend::with_env(server, settings, env)?))
}

fn settings(options: &LockOptions, _defect: Option<Defect>) -> RedisSettings {
    RedisSettings {
        wait: options.wait,
        fence_floor: options.fence_floor,
        #[cfg(debug_assertions)]
        mutant: _defect,
        ..RedisSettings::default()
    }
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
