//! One Postgres: leases that are rows of a table, and its advisory locks.

mod guest;
mod observer;
mod questions;
mod rows;

use super::floor::{ANSWER_WITHIN, BareWrites, Floor, answered, twice};
use super::{Defect, LockServers, Opened, Program, Service, only};
use crate::model::ServicePlan;
use fencing_lock::servers::{PostgresConnection, connect_postgres, postgres_problem};
use fencing_lock::{LockProblem, PostgresAdvisoryBackend, PostgresLeaseBackend, PostgresSettings};
use futures_util::TryFutureExt;
use observer::observe_postgres;
pub use questions::PostgresServer;
use std::sync::Arc;

const PROGRAM: Program = Program {
    name: "postgres",
    about: "A Postgres, with the user and the database postgres and without a password",
    own_keys: "fencing_locks/",
    is_cluster: false,
    has_places: false,
    answers: &PostgresServer,
    look: |server| {
        let (host, port) = (server.ip(), server.port());
        format!("psql -h {host} -p {port} -U postgres -c 'TABLE fencing_locks'")
    },
    guest: Some(&guest::GUEST),
    observe: |watch, layout| Box::pin(observe_postgres(watch, layout)),
};

const ONE_POSTGRES: LockServers = LockServers {
    program: &PROGRAM,
    at_least: 1,
    at_most: Some(1),
    words: "one Postgres",
    topology: "postgres",
};

pub(super) const LEASE: Service = Service {
    group: "postgres-lease",
    servers: ONE_POSTGRES,
    has_choices: false,
    has_lock_delay: false,
    keyspace: None,
    in_order: |_| false,
    plan: ServicePlan {
        // A grant is on disk before it is answered.
        keeps_grants: true,
        ..ServicePlan::ONE_SERVER
    },
    tokens: "a column of the row, on disk",
    floor: Floor {
        words: "two UPDATEs of a row",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict: |_| None,
    open: |_, servers, _: Option<Defect>, _| -> Opened {
        let server = only("postgres-lease", servers)?;
        let settings = PostgresSettings::default();
        Ok(Arc::new(PostgresLeaseBackend::new(server, settings)?))
    },
};

pub(super) const ADVISORY: Service = Service {
    group: "postgres-advisory",
    tokens: "a sequence, on disk",
    plan: ServicePlan {
        renews_silently: true,
        ends_with_worker: true,
        // A session ends with its server, and its locks with it.
        keeps_grants: false,
        ..ServicePlan::ONE_SERVER
    },
    open: |_, servers, _: Option<Defect>, _| -> Opened {
        let server = only("postgres-advisory", servers)?;
        let settings = PostgresSettings::default();
        Ok(Arc::new(PostgresAdvisoryBackend::new(server, settings)?))
    },
    ..LEASE
};

/// The same locks, by a client that does not check whether its session is its own.
pub(super) const ADVISORY_UNCHECKED: Service = Service {
    open: |_, servers, _: Option<Defect>, _| -> Opened {
        let server = only("postgres-advisory-unchecked", servers)?;
        let settings = PostgresSettings::default();
        let backend = PostgresAdvisoryBackend::new_unchecked(server, settings)?;
        Ok(Arc::new(backend))
    },
    ..ADVISORY
};

const BARE_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS fencepost_floor (id int PRIMARY KEY, n bigint)";
const BARE_ROW: &str = "INSERT INTO fencepost_floor VALUES (1, 0) ON CONFLICT DO NOTHING";
const BARE_WRITE: &str = "UPDATE fencepost_floor SET n = n + 1 WHERE id = 1";

async fn bare_writes(servers: &[String]) -> Result<BareWrites, LockProblem> {
    let server = servers.first().map_or("", String::as_str);
    let connection = connect_postgres(server, ANSWER_WITHIN, |_| ()).await?;
    let connection = Arc::new(connection);
    ask(&connection, BARE_TABLE).await?;
    ask(&connection, BARE_ROW).await?;
    Ok(twice(connection, |connection| async move {
        ask(&connection, BARE_WRITE).await
    }))
}

/// Sends one statement in one round trip, as the locks do.
async fn ask(connection: &PostgresConnection, statement: &str) -> Result<(), LockProblem> {
    let asked = connection.query_typed(statement, &[]);
    answered(asked.map_err(postgres_problem)).await.map(|_| ())
}
