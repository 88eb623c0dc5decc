//! An etcd cluster: our own lock there, and the one that the server offers.

use super::observe::observe_etcd;
use super::{Defect, Keyspace, LockServers, Program, Readback, Service};
use crate::model::{ClockName, ServicePlan, joined};
use fencing_lock::{EtcdBackend, EtcdLockApiBackend, EtcdSettings};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

const PROGRAM: Program = Program {
    name: "etcd",
    about: "The members of an etcd cluster",
    own_keys: "/locks/",
    is_cluster: true,
    has_places: true,
    answers: Readback::Etcd,
    hints,
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
        keeps_grants: true,
        by_majority: false,
        leases_by: ClockName::Monotonic,
    },
    ttl_conflict,
    open: |_, servers, defect| Ok(Arc::new(EtcdBackend::new(servers, settings(defect))?)),
};

pub(super) const LOCK_API: Service = Service {
    group: "etcd-lock-api",
    keyspace: None,
    open: |_, servers, defect| {
        Ok(Arc::new(EtcdLockApiBackend::new(
            servers,
            settings(defect),
        )?))
    },
    ..ETCD
};

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

fn hints(servers: &[SocketAddr]) -> Vec<String> {
    let all = joined(servers, ",");
    vec![
        format!("etcdctl --endpoints {all} member list"),
        format!("fencepost contend --etcd {all} --duration 5s"),
    ]
}
