//! A majority of independent Redis nodes.

use super::floor::Floor;
use super::redis::{REDIS, bare_writes};
use super::{Defect, LockServers, Opened, Service};
use crate::model::ServicePlan;
use fencing_lock::{Env, RedlockBackend, RedlockSettings, TokenScheme};
use std::sync::Arc;

pub(super) const NODES: LockServers = LockServers {
    program: &REDIS,
    at_least: 3,
    at_most: None,
    words: "several independent Redis nodes",
    topology: "redlock",
};

pub(super) const REDLOCK: Service = Service {
    group: "redlock",
    servers: NODES,
    has_choices: false,
    has_lock_delay: false,
    keyspace: None,
    in_order: |_| false,
    plan: ServicePlan {
        by_majority: true,
        ..ServicePlan::ONE_SERVER
    },
    tokens: "counters of a majority, in memory",
    floor: Floor {
        words: "SET, DEL on all nodes",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict: |_| None,
    open: |_, servers, defect, env| open(servers, TokenScheme::Strict, defect, env),
};

/// Redlock with tokens that may go backwards; its locks are those of Redlock.
pub(super) const UNSAFE_TOKENS: Service = Service {
    open: |_, servers, defect, env| open(servers, TokenScheme::UnsafeMaxOfCounters, defect, env),
    ..REDLOCK
};

fn open(servers: &[String], tokens: TokenScheme, _defect: Option<Defect>, env: Env) -> Opened {
    let settings = RedlockSettings {
        tokens,
        #[cfg(debug_assertions)]
        mutant: _defect,
        ..RedlockSettings::default()
    };
    Ok(Arc::new(RedlockBackend::with_env(servers, settings, env)?))
}
