//! Lock servers in memory, which only the simulation has: one, and a majority of several.

mod questions;

use super::floor::Floor;
use super::{LockServers, Program, Service, only};
use crate::model::ServicePlan;
use fencing_lock::{LockBackend, LockError, LockProblem, MemoryBackend, NaiveMajority};
use std::sync::Arc;

pub(super) const PROGRAM: Program = Program {
    name: "memory",
    about: "Lock servers of the simulation",
    own_keys: "",
    is_cluster: false,
    has_places: false,
    answers: &questions::ServerInMemory,
    // Nobody can: `up` refuses to start them.
    look: |_| String::new(),
    guest: None,
    observe: |_, _| Box::pin(async { Err(only_simulated()) }),
};

pub(super) const ONE_SERVER: Service = Service {
    group: "memory",
    servers: LockServers {
        program: &PROGRAM,
        at_least: 1,
        at_most: Some(1),
        words: "one lock server in memory",
        topology: "memory",
    },
    has_choices: false,
    has_lock_delay: false,
    keyspace: None,
    in_order: |_| true,
    plan: ServicePlan::ONE_SERVER,
    tokens: "a counter in memory",
    floor: Floor {
        words: "nothing",
        open: |_| Box::pin(async { Err(only_simulated()) }),
    },
    ttl_conflict: |_| None,
    open: |_, servers, _, env| {
        let server = only("memory", servers)?;
        Ok(Arc::new(MemoryBackend::with_env(server, env)?))
    },
};

/// The highest token of a majority, which is not the highest of all.
pub(super) const MAJORITY: Service = Service {
    group: "memory-majority",
    servers: LockServers {
        at_least: 3,
        at_most: None,
        words: "several lock servers in memory",
        topology: "memory-majority",
        ..ONE_SERVER.servers
    },
    in_order: |_| false,
    plan: ServicePlan {
        by_majority: true,
        ..ServicePlan::ONE_SERVER
    },
    tokens: "the highest counter of a majority, in memory",
    open: |_, servers, _, env| {
        let member = |server: &String| -> Result<Box<dyn LockBackend>, LockError> {
            Ok(Box::new(MemoryBackend::with_env(server, env.clone())?))
        };
        let members = servers.iter().map(member).collect::<Result<_, _>>()?;
        Ok(Arc::new(NaiveMajority::new(
            "memory-majority",
            members,
            env,
        )))
    },
    ..ONE_SERVER
};

fn only_simulated() -> LockProblem {
    let problem = "these servers are only simulated; use --runtime sim";
    LockProblem::Unreachable(problem.to_owned())
}
