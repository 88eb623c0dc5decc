//! One MariaDB: the locks that its sessions hold.

mod observer;
mod questions;

use super::floor::{ANSWER_WITHIN, BareWrites, Floor, answered, twice};
use super::{Defect, LockServers, Opened, Program, Service, only};
use crate::model::ServicePlan;
use fencing_lock::LockProblem;
use fencing_lock::servers::{MariadbConnection, connect_mariadb, mariadb_problem};
use fencing_lock::{MariadbBackend, MariadbSettings};
use futures_util::TryFutureExt;
use observer::observe_mariadb;
use std::sync::Arc;

const PROGRAM: Program = Program {
    name: "mariadb",
    about: "A MariaDB, with the user and the database fencing_lock and without a password",
    own_keys: "fencing_lock_tokens/",
    is_cluster: false,
    has_places: false,
    answers: &questions::MariadbServer,
    look: |server| {
        let (host, port) = (server.ip(), server.port());
        format!(
            "mariadb -h {host} -P {port} -u fencing_lock fencing_lock -e 'SELECT * FROM fencing_lock_tokens'"
        )
    },
    guest: None,
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
        ends_with_worker: true,
        // A session ends with its server, and its locks with it.
        keeps_grants: false,
        ..ServicePlan::ONE_SERVER
    },
    tokens: "a counter row, in the statement that got the lock",
    floor: Floor {
        words: "two updates of one row",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict: |_| None,
    open: |_, servers, _: Option<Defect>, _| -> Opened {
        let server = only("mariadb", servers)?;
        let settings = MariadbSettings::default();
        Ok(Arc::new(MariadbBackend::new(server, settings)?))
    },
};

/// The same locks, by a client that does not look at its session while it holds one.
pub(super) const WITHOUT_PING: Service = Service {
    plan: ServicePlan {
        ends_with_worker: true,
        ..ServicePlan::ONE_SERVER
    },
    open: |_, servers, _: Option<Defect>, _| -> Opened {
        let server = only("mariadb-without-ping", servers)?;
        let settings = MariadbSettings::default();
        let backend = MariadbBackend::new_without_ping(server, settings)?;
        Ok(Arc::new(backend))
    },
    ..MARIADB
};

const BARE_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS fencepost_floor (id INT PRIMARY KEY, n BIGINT NOT NULL)";
const BARE_ROW: &str = "INSERT IGNORE INTO fencepost_floor VALUES (1, 0)";
const BARE_WRITE: &str = "UPDATE fencepost_floor SET n = n + 1 WHERE id = 1";

async fn bare_writes(servers: &[String]) -> Result<BareWrites, LockProblem> {
    let server = servers.first().map_or("", String::as_str);
    let connection = Arc::new(connect_mariadb(server, ANSWER_WITHIN).await?);
    ask(&connection, BARE_TABLE).await?;
    ask(&connection, BARE_ROW).await?;
    Ok(twice(connection, |connection| async move {
        ask(&connection, BARE_WRITE).await
    }))
}

async fn ask(connection: &MariadbConnection, statement: &str) -> Result<(), LockProblem> {
    let asked = connection.ask(statement).map_err(mariadb_problem);
    answered(asked).await.map(drop)
}
