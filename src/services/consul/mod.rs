//! One Consul: a key that a session holds.

mod observer;
mod questions;
mod rows;

use super::floor::{BareWrites, Floor, twice};
use super::{Defect, LockOptions, LockServers, Opened, Program, Service, only};
use crate::model::{ClockName, ServicePlan};
use fencing_lock::servers::ConsulAgent;
use fencing_lock::{ConsulBackend, ConsulSettings, Env, LockProblem};
use observer::observe_consul;
use std::sync::Arc;
use std::time::Duration;

const PROGRAM: Program = Program {
    name: "consul",
    about: "An agent of a Consul whose sessions may be as short as --ttl, without an ACL token",
    own_keys: "locks/",
    is_cluster: false,
    has_places: false,
    answers: &questions::ConsulServer,
    look: |server| format!("curl 'http://{server}/v1/kv/locks/?recurse'"),
    guest: None,
    observe: |watch, layout| Box::pin(observe_consul(watch, layout)),
};

/// The shortest session that the servers of this project's topology keep; 10 s by default.
const SHORTEST_SESSION: Duration = Duration::from_secs(1);

pub(super) const CONSUL: Service = Service {
    group: "consul",
    servers: LockServers {
        program: &PROGRAM,
        at_least: 1,
        at_most: Some(1),
        words: "one Consul",
        topology: "consul",
    },
    has_choices: false,
    has_lock_delay: true,
    keyspace: None,
    in_order: |_| false,
    plan: ServicePlan {
        // A grant is in the log on disk before it is answered.
        keeps_grants: true,
        leases_by: ClockName::Monotonic,
        ..ServicePlan::ONE_SERVER
    },
    tokens: "indexes of the consensus log",
    floor: Floor {
        words: "two PUTs of one key",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict: |ttl| {
        (ttl < SHORTEST_SESSION).then_some("Consul keeps no session for less than 1s")
    },
    open,
};

fn open(
    options: &LockOptions,
    servers: &[String],
    _: Option<Defect>,
    _: fencing_lock::Env,
) -> Opened {
    let settings = ConsulSettings {
        lock_delay: options.lock_delay,
        ..ConsulSettings::default()
    };
    let server = only("consul", servers)?;
    Ok(Arc::new(ConsulBackend::new(server, settings)?))
}

async fn bare_writes(servers: &[String]) -> Result<BareWrites, LockProblem> {
    let server = servers.first().map_or("", String::as_str);
    let agent = ConsulAgent::at(server, ConsulSettings::default(), Env::default())?;
    Ok(twice(Arc::new(agent), |agent| async move {
        agent.write("fencepost/floor").await
    }))
}
