use crate::load::{LoadError, LoadResult, Names};
use etcd_client::{
    AlarmAction, AlarmMember, AlarmOptions, AlarmType, Client, CompactionOptions, ConnectOptions,
    Error, GetOptions, LeaseGrantOptions, PutOptions, ResponseHeader,
};
use fencing_lock::servers::{check_etcd_address, etcd_line_prefix};
use parking_lot::Mutex;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::timeout;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);
/// Compaction and defragmentation rewrite a database, and etcd answers nobody meanwhile.
const REWRITE_TIMEOUT: Duration = Duration::from_secs(300);

/// etcd's page of metrics has a few hundred kilobytes.
const MAX_PAGE_BYTES: usize = 16 * 1024 * 1024;

/// The members of an etcd cluster. All counts and writes go through the first one.
pub(super) struct Servers {
    members: Vec<Client>,
    metrics: (reqwest::Client, String),
    names: Names,
    /// The common prefix of all our keys, which no other keys have.
    prefix: String,
}

/// The reason why the experiment ended early.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Stop {
    #[error("interrupted")]
    Interrupted,
    #[error("the database has reached its quota ({0})")]
    Full(String),
    #[error("etcd did not do it: {0}")]
    Failed(String),
}

/// All leases that were requested, and how many of them were granted.
#[derive(Debug, Default)]
pub(super) struct Leases {
    ids: Mutex<Vec<i64>>,
    granted: AtomicU64,
}

impl Leases {
    pub(super) fn granted(&self) -> u64 {
        self.granted.load(Ordering::Relaxed)
    }

    pub(super) fn ids(&self) -> Vec<i64> {
        self.ids.lock().clone()
    }

    fn choose(&self) -> i64 {
        let id = fastrand::i64(1..=i64::MAX);
        self.ids.lock().push(id);
        id
    }
}

pub(super) struct Status {
    pub(super) revision: i64,
    pub(super) db_size: i64,
    pub(super) db_size_in_use: i64,
}

impl Servers {
    pub(super) async fn connect(servers: &[String], names: Names) -> LoadResult<Servers> {
        let mut members = Vec::new();
        for server in servers {
            check_etcd_address(server).map_err(|problem| LoadError::Usage(problem.to_string()))?;
            let unreachable = |reason: String| LoadError::Unreachable {
                what: server.clone(),
                reason,
            };
            let options = ConnectOptions::new().with_connect_timeout(CONNECT_TIMEOUT);
            let client = Client::connect([server], Some(options)).await;
            let mut client = client.map_err(|error| unreachable(error.to_string()))?;
            let status = within(CONNECT_TIMEOUT, client.status()).await;
            status.map_err(|stop| unreachable(stop.to_string()))?;
            members.push(client);
        }
        let address = servers[0].strip_prefix("http://").unwrap_or(&servers[0]);
        // A proxy of the environment is meant for other hosts.
        let http = reqwest::Client::builder().no_proxy().build();
        let http = http.map_err(|error| LoadError::Unreachable {
            what: format!("http://{address}/metrics"),
            reason: error.to_string(),
        })?;
        let whole = etcd_line_prefix(names.stem());
        Ok(Servers {
            members,
            metrics: (http, format!("http://{address}/metrics")),
            prefix: whole.trim_end_matches('/').to_owned(),
            names,
        })
    }

    /// Makes a lease and its key, as a lock has them.
    ///
    /// We choose the id of the lease and note it before the request: a full etcd refuses the
    /// lease and grants it anyway, and it has to be removed.
    pub(super) async fn grant(
        &self,
        ttl: Duration,
        index: u64,
        leases: &Leases,
    ) -> Result<(), Stop> {
        let mut client = self.first();
        let ttl_s = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
        let lease = leases.choose();
        let options = LeaseGrantOptions::new().with_id(lease);
        within(REQUEST_TIMEOUT, client.lease_grant(ttl_s, Some(options))).await?;
        leases.granted.fetch_add(1, Ordering::Relaxed);
        let owner = self.names.owner(index).to_string();
        let key = format!("{}{owner}", etcd_line_prefix(&self.names.name(index)));
        let options = PutOptions::new().with_lease(lease);
        let put = within(REQUEST_TIMEOUT, client.put(key, owner, Some(options))).await;
        match put {
            // The lease expired before its key existed, so it removed nothing.
            Err(Stop::Failed(text)) if is_gone(&text) => Ok(()),
            put => put.map(|_| ()),
        }
    }

    pub(super) async fn revoke(&self, lease: i64) -> Result<(), Stop> {
        let mut client = self.first();
        match within(REQUEST_TIMEOUT, client.lease_revoke(lease)).await {
            Err(Stop::Failed(text)) if is_gone(&text) => Ok(()),
            revoked => revoked.map(|_| ()),
        }
    }

    /// Returns how many of our keys there are, and at which revision.
    pub(super) async fn count(&self) -> Result<(u64, i64), Stop> {
        let mut client = self.first();
        let options = GetOptions::new().with_prefix().with_count_only();
        let asked = client.get(self.prefix.as_str(), Some(options));
        let counted = within(REQUEST_TIMEOUT, asked).await?;
        let keys = u64::try_from(counted.count()).unwrap_or_default();
        Ok((keys, counted.header().map_or(0, ResponseHeader::revision)))
    }

    pub(super) async fn status(&self) -> Result<Status, Stop> {
        let mut client = self.first();
        let status = within(REQUEST_TIMEOUT, client.status()).await?;
        Ok(Status {
            revision: status.header().map_or(0, ResponseHeader::revision),
            db_size: status.db_size(),
            db_size_in_use: status.raft_used_db_size(),
        })
    }

    /// Returns the resident memory; 0 if the server does not report it.
    pub(super) async fn resident_memory(&self) -> u64 {
        let (client, url) = &self.metrics;
        let page = async {
            let answer = client.get(url).send().await.map_err(io::Error::other)?;
            bounded_io::body(answer, MAX_PAGE_BYTES).await
        };
        match timeout(CONNECT_TIMEOUT, page).await {
            Ok(Ok(page)) => resident_memory_in(&String::from_utf8_lossy(&page)),
            _ => 0,
        }
    }

    /// Discards the history before this revision, including that of other users.
    pub(super) async fn compact(&self, revision: i64) -> Result<(), Stop> {
        let mut client = self.first();
        let options = CompactionOptions::new().with_physical();
        within(REWRITE_TIMEOUT, client.compact(revision, Some(options))).await?;
        Ok(())
    }

    pub(super) async fn defragment(&self) -> Result<(), Stop> {
        for member in &self.members {
            within(REWRITE_TIMEOUT, member.clone().defragment()).await?;
        }
        Ok(())
    }

    /// Lets the cluster write again, once there is room.
    pub(super) async fn disarm(&self) -> Result<(), Stop> {
        for member in self.full_members().await? {
            let mut client = self.first();
            let mut options = AlarmOptions::new();
            options.with_member(member);
            let off = client.alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options));
            within(REQUEST_TIMEOUT, off).await?;
        }
        Ok(())
    }

    /// Returns the members that report a reached quota. The cluster accepts no writes while
    /// there is one.
    pub(super) async fn full_members(&self) -> Result<Vec<u64>, Stop> {
        let mut client = self.first();
        let asked = client.alarm(AlarmAction::Get, AlarmType::Nospace, None);
        let alarms = within(REQUEST_TIMEOUT, asked).await?;
        let members = alarms.alarms().iter();
        Ok(members.map(AlarmMember::member_id).collect())
    }

    fn first(&self) -> Client {
        self.members[0].clone()
    }
}

async fn within<T>(
    limit: Duration,
    request: impl Future<Output = Result<T, Error>>,
) -> Result<T, Stop> {
    match timeout(limit, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(stop_of(error)),
        Err(_) => Err(Stop::Failed(format!(
            "nothing within {} s",
            limit.as_secs()
        ))),
    }
}

fn stop_of(error: Error) -> Stop {
    let text = match &error {
        Error::GRpcStatus(status) => status.message().to_owned(),
        other => other.to_string(),
    };
    match text.contains("database space exceeded") {
        true => Stop::Full(text),
        false => Stop::Failed(text),
    }
}

fn is_gone(text: &str) -> bool {
    text.contains("requested lease not found")
}

fn resident_memory_in(page: &str) -> u64 {
    let number = page
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    // etcd writes it as 2.1e+07.
    let bytes: Option<f64> = number.and_then(|number| number.trim().parse().ok());
    bytes.unwrap_or_default() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_the_page_of_metrics() {
        let page = "# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 2.1e+07\nother 1\n";
        assert_eq!(resident_memory_in(page), 21_000_000);
        assert_eq!(resident_memory_in("not a page of metrics"), 0);
    }

    #[test]
    fn a_full_database_is_told_from_other_failures() {
        let full = tonic::Status::resource_exhausted("etcdserver: mvcc: database space exceeded");
        assert!(matches!(stop_of(Error::GRpcStatus(full)), Stop::Full(_)));
        let other = tonic::Status::unavailable("etcdserver: no leader");
        assert!(matches!(stop_of(Error::GRpcStatus(other)), Stop::Failed(_)));
    }
}
