//! What the tests of the locks in databases share.

use crate::support::{Server, mariadb_address, own_mariadb, own_postgres, postgres_address};
use fencing_lock::servers::{
    MariadbConnection, PostgresConnection, connect_mariadb, connect_postgres,
};
use fencing_lock::{
    LockBackend, LockClient, LockMetrics, LockSettings, MariadbBackend, MariadbSettings,
    PostgresAdvisoryBackend, PostgresLeaseBackend, PostgresSettings,
};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::types::Type;
use uuid::Uuid;

pub const SECOND: Duration = Duration::from_secs(1);
/// So long that a lock which is free was released and did not run out.
pub const LONG: Duration = Duration::from_secs(60);
/// Nothing ever listens on this port of the reserved ones.
pub const NOBODY: &str = "127.0.0.1:1";

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Lease,
    Advisory,
    Mariadb,
}

pub const KINDS: [Kind; 3] = [Kind::Lease, Kind::Advisory, Kind::Mariadb];
/// Those that a session holds.
pub const OF_SESSIONS: [Kind; 2] = [Kind::Advisory, Kind::Mariadb];

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Lease => "postgres-lease",
            Kind::Advisory => "postgres-advisory",
            Kind::Mariadb => "mariadb",
        }
    }

    /// The server that all tests share.
    pub fn address(self) -> String {
        match self {
            Kind::Lease | Kind::Advisory => postgres_address(),
            Kind::Mariadb => mariadb_address(),
        }
    }

    /// A new server, to be stopped and frozen.
    pub fn own_server(self) -> Server {
        match self {
            Kind::Lease | Kind::Advisory => own_postgres(),
            Kind::Mariadb => own_mariadb(),
        }
    }

    /// The address of a new and empty database.
    pub async fn database(self) -> String {
        let name = format!("db_{}", Uuid::new_v4().simple());
        let create = format!("CREATE DATABASE {name}");
        match self {
            Kind::Lease | Kind::Advisory => {
                connection().await.batch_execute(&create).await.unwrap();
                format!("postgres://postgres@{}/{name}", self.address())
            }
            Kind::Mariadb => {
                mariadb(&self.address()).await.ask(create).await.unwrap();
                format!("mariadb://fencing_lock@{}/{name}", self.address())
            }
        }
    }

    fn backend(self, address: &str) -> Arc<dyn LockBackend> {
        let settings = PostgresSettings::default();
        match self {
            Kind::Lease => Arc::new(PostgresLeaseBackend::new(address, settings).unwrap()),
            Kind::Advisory => Arc::new(PostgresAdvisoryBackend::new(address, settings).unwrap()),
            Kind::Mariadb => {
                let settings = MariadbSettings::default();
                Arc::new(MariadbBackend::new(address, settings).unwrap())
            }
        }
    }

    /// A client of its own, as another process would have one.
    pub fn locks(self, ttl: Duration) -> (LockClient, LockMetrics) {
        self.locks_at(&self.address(), ttl)
    }

    pub fn locks_at(self, address: &str, ttl: Duration) -> (LockClient, LockMetrics) {
        let metrics = LockMetrics::default();
        let settings = LockSettings { ttl, seed: 1 };
        let client = LockClient::new(self.backend(address), settings, metrics.clone());
        (client.unwrap(), metrics)
    }
}

pub fn soon() -> Instant {
    Instant::now() + 5 * SECOND
}

pub fn unique_key() -> String {
    format!("test-{}", Uuid::new_v4())
}

/// A connection past the library.
pub async fn connection_to(address: &str) -> PostgresConnection {
    connect_postgres(address, 5 * SECOND, |_| {}).await.unwrap()
}

pub async fn connection() -> PostgresConnection {
    connection_to(&postgres_address()).await
}

pub async fn mariadb(address: &str) -> MariadbConnection {
    connect_mariadb(address, 5 * SECOND).await.unwrap()
}

/// Who holds the lease of a key, asked past the library.
pub async fn holder(postgres: &PostgresConnection, key: &str) -> Option<String> {
    let holder = "SELECT owner FROM fencing_locks
                  WHERE key = $1 AND owner IS NOT NULL AND expires_at > clock_timestamp()";
    let row = postgres
        .query_typed_opt(holder, &[(&key, Type::TEXT)])
        .await;
    row.unwrap().map(|row| row.get(0))
}

/// The token that was drawn last for the lease of a key.
pub async fn token(postgres: &PostgresConnection, key: &str) -> Option<i64> {
    let token = "SELECT token FROM fencing_locks WHERE key = $1";
    let row = postgres.query_typed_opt(token, &[(&key, Type::TEXT)]).await;
    row.unwrap().map(|row| row.get(0))
}

/// Fails where a lock stays behind: no TTL here is short enough to free it.
pub async fn until_free(kind: Kind, address: &str, key: &str) {
    let (locks, _) = kind.locks_at(address, LONG);
    let free = async {
        loop {
            if let Ok(Some(lease)) = locks.try_acquire(key).await {
                lease.release().await;
                return;
            }
            sleep(SECOND / 100).await;
        }
    };
    timeout(10 * SECOND, free).await.expect("no lock stays");
}
