//! One MariaDB: the locks that its sessions hold.

use super::observe::observe_mariadb;
use super::{Defect, LockServers, Opened, Program, Readback, Service, only};
use crate::model::{ServicePlan, joined};
use fencing_lock::{MariadbBackend, MariadbSettings};
use std::net::SocketAddr;
use std::sync::Arc;

const PROGRAM: Program = Program {
    name: "mariadb",
    about: "A MariaDB, with the user and the database fencing_lock and without a password",
    own_keys: "fencing_lock_tokens/",
    is_cluster: false,
    has_places: false,
    answers: Readback::Mariadb,
    hints,
    observe: |watch, layout| Box::pin(observe_mariadb(watch, layout)),
};

pub(super) const MARIADB: Service = Service {
    group: "mariadb",
    servers: LockServers {
        program: &PROGRAM,
        at_least: 1,
        at_most: Some(1),
        words: "one MariaDB",
        topology: "mariadb",
    },
    has_choices: false,
    has_lock_delay: false,
    keyspace: None,
    in_order: |_| false,
    plan: ServicePlan {
        renews_silently: true,
        // A session ends with its server, and its locks with it.
        keeps_grants: false,
        ..ServicePlan::ONE_SERVER
    },
    ttl_conflict: |_| None,
    open: |_, servers, _: Option<Defect>| -> Opened {
        let server = only("mariadb", servers)?;
        let settings = MariadbSettings::default();
        Ok(Arc::new(MariadbBackend::new(server, settings)?))
    },
};

/// The same locks, by a client that does not look at its session while it holds one.
pub(super) const WITHOUT_PING: Service = Service {
    plan: ServicePlan::ONE_SERVER,
    open: |_, servers, _: Option<Defect>| -> Opened {
        let server = only("mariadb-without-ping", servers)?;
        let settings = MariadbSettings::default();
        let backend = MariadbBackend::new_without_ping(server, settings)?;
        Ok(Arc::new(backend))
    },
    ..MARIADB
};

fn hints(servers: &[SocketAddr]) -> Vec<String> {
    let all = joined(servers, ",");
    let first = servers.first();
    let look = first.map(|server| {
        let (host, port) = (server.ip(), server.port());
        format!(
            "mariadb -h {host} -P {port} -u fencing_lock fencing_lock -e 'SELECT * FROM fencing_lock_tokens'"
        )
    });
    let contend = format!("fencepost contend --mariadb {all} --duration 5s");
    look.into_iter().chain([contend]).collect()
}
