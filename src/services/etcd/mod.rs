//! An etcd cluster: our own lock there, and the one that the server offers.

mod bystander;
mod guest;
mod observer;
mod played;
mod questions;
mod rows;

use super::floor::{BareWrites, Floor, answered};
use super::{Defect, Keyspace, LockServers, Program, Service};
use crate::model::{ClockName, ServicePlan};
pub use bystander::EtcdBystander;
use etcd_client::ConnectOptions;
use fencing_lock::servers::{EtcdFailure, EtcdWire, etcd_wire};
use fencing_lock::{EtcdBackend, EtcdLockApiBackend, EtcdSettings, LockProblem};
use futures_util::TryFutureExt;
use observer::observe_etcd;
use std::sync::Arc;
use std::time::Duration;

pub(super) const PROGRAM: Program = Program {
    name: "etcd",
    about: "The members of an etcd cluster",
    own_keys: "/locks/",
    is_cluster: true,
    has_places: true,
    answers: &questions::EtcdServer,
    look: |server| format!("etcdctl --endpoints {server} member list"),
    guest: Some(&guest::GUEST),
    observe: |watch, layout| Box::pin(observe_etcd(watch, layout)),
};

/// The shortest lease that etcd grants, with its own heartbeats and elections.
const SHORTEST_LEASE: Duration = Duration::from_secs(2);

pub(super) const ETCD: Service = Service {
    group: "etcd",
    servers: LockServers {
        program: &PROGRAM,
        at_least: 1,
        at_most: None,
        words: "an etcd cluster",
        topology: "etcd",
    },
    has_choices: false,
    has_lock_delay: false,
    keyspace: Some(Keyspace::Etcd),
    in_order: |_| true,
    // A member has everything on disk, and so have the others.
    plan: ServicePlan {
        in_session: true,
        renews_silently: true,
        ends_with_worker: false,
        keeps_grants: true,
        by_majority: false,
        leases_by: ClockName::Monotonic,
    },
    tokens: "revisions of the consensus log",
    floor: Floor {
        words: "two puts at the leader",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict,
    open: |_, servers, defect, env| {
        let backend = EtcdBackend::with_env(servers, settings(defect), env)?;
        Ok(Arc::new(backend))
    },
};

pub(super) const LOCK_API: Service = Service {
    group: "etcd-lock-api",
    keyspace: None,
    open: |_, servers, defect, env| {
        let backend = EtcdLockApiBackend::with_env(servers, settings(defect), env)?;
        Ok(Arc::new(backend))
    },
    ..ETCD
};

async fn bare_writes(members: &[String]) -> Result<BareWrites, LockProblem> {
    let leader = leader(members).await?;
    Ok(Box::new(move || {
        let mut kv = leader.kv.clone();
        Box::pin(async move {
            answered(kv.put(BARE_KEY, "held", None).map_err(EtcdFailure::from)).await?;
            answered(kv.put(BARE_KEY, "free", None).map_err(EtcdFailure::from)).await?;
            Ok(())
        })
    }))
}

const BARE_KEY: &str = "/fencepost-floor";

/// Returns the member that leads: a write through another one costs a hop more, and the locks
/// save it as well.
async fn leader(members: &[String]) -> Result<EtcdWire, LockProblem> {
    for member in members {
        let mut wire = etcd_wire(member, ConnectOptions::new()).await?;
        let status = wire.maintenance.status().map_err(EtcdFailure::from);
        let status = answered(status).await?;
        let own = status.header().map(|header| header.member_id());
        if own == Some(status.leader()) {
            return Ok(wire);
        }
    }
    let problem = "no member says that it is the leader";
    Err(LockProblem::Unreachable(problem.to_owned()))
}

fn settings(_defect: Option<Defect>) -> EtcdSettings {
    EtcdSettings {
        #[cfg(debug_assertions)]
        mutant: _defect,
        ..EtcdSettings::default()
    }
}

fn ttl_conflict(ttl: Duration) -> Option<&'static str> {
    // The cluster would grant a longer lease than was expected.
    let is_rounded = ttl < SHORTEST_LEASE || ttl.subsec_nanos() > 0;
    is_rounded.then_some("etcd counts leases in whole seconds, and grants at least 2s")
}
