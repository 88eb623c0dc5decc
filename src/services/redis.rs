//! One Redis.

use super::observe::observe_redis;
use super::{Defect, Keyspace, LockOptions, LockServers, Opened, Program, Readback, Service, only};
use crate::model::{ServicePlan, joined};
use fencing_lock::{RedisBackend, RedisSettings};
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

fn hints(servers: &[SocketAddr]) -> Vec<String> {
    let all = joined(servers, ",");
    let first = servers.first();
    let monitor = first.map(|server| format!("redis-cli -p {} monitor", server.port()));
    let contend = format!("fencepost contend --redis {all} --duration 5s");
    monitor.into_iter().chain([contend]).collect()
}
