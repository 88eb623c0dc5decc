//! A ZooKeeper ensemble.

mod observer;
mod questions;

use super::floor::{BareWrites, Floor, answered, twice};
use super::{Defect, LockServers, Opened, Program, Service};
use crate::model::{ClockName, ServicePlan};
use fencing_lock::{LockProblem, ZookeeperBackend, ZookeeperSettings};
use futures_util::{FutureExt, TryFutureExt};
use observer::observe_zookeeper;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions};

const PROGRAM: Program = Program {
    name: "zookeeper",
    about: "The members of a ZooKeeper ensemble",
    own_keys: "/fencing-lock/locks/",
    is_cluster: true,
    has_places: true,
    answers: &questions::ZookeeperServer,
    look: |server| format!("zkCli.sh -server {server} ls -R /fencing-lock"),
    guest: None,
    observe: |watch, layout| Box::pin(observe_zookeeper(watch, layout)),
};

/// The bounds of a session in the topology of this project: two of its ticks, and its maximum.
const SHORTEST_SESSION: Duration = Duration::from_millis(500);
const LONGEST_SESSION: Duration = Duration::from_secs(60);

pub(super) const ZOOKEEPER: Service = Service {
    group: "zookeeper",
    servers: LockServers {
        program: &PROGRAM,
        at_least: 1,
        at_most: None,
        words: "a ZooKeeper ensemble",
        topology: "zookeeper",
    },
    has_choices: false,
    has_lock_delay: false,
    keyspace: None,
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
    tokens: "zxids of the consensus log",
    floor: Floor {
        words: "two writes of one node",
        open: |servers| Box::pin(bare_writes(servers)),
    },
    ttl_conflict: |ttl| {
        let is_kept = (SHORTEST_SESSION..=LONGEST_SESSION).contains(&ttl);
        (!is_kept).then_some("the ZooKeeper of this project keeps sessions of 500ms to 60s")
    },
    open: |_, servers, _: Option<Defect>, _| -> Opened {
        let settings = ZookeeperSettings::default();
        Ok(Arc::new(ZookeeperBackend::new(servers, settings)?))
    },
};

/// A node that no lock uses.
const BARE_NODE: &str = "/fencepost-floor";
const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());

async fn bare_writes(members: &[String]) -> Result<BareWrites, LockProblem> {
    let problem = |error: zookeeper_client::Error| LockProblem::NoAnswer(error.to_string());
    let members = members.join(",");
    let client = answered(Client::connect(&members).map_err(problem)).await?;
    let created = client
        .create(BARE_NODE, b"", &PERSISTENT)
        .map(|made| match made {
            Ok(_) | Err(zookeeper_client::Error::NodeExists) => Ok(()),
            Err(error) => Err(problem(error)),
        });
    answered(created).await?;
    Ok(twice(client, move |client| async move {
        let written = client.set_data(BARE_NODE, b"x", None).map_err(problem);
        answered(written).await.map(drop)
    }))
}

/// The facts that a server reports about itself.
struct ServerStatus {
    version: String,
    leads: bool,
}

const MAX_STATUS_BYTES: u64 = 64 * 1024;

/// Asks a server for its status by the four letters `srvr`, which need no session.
async fn status(address: &str, within: Duration) -> io::Result<ServerStatus> {
    let asking = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(b"srvr").await?;
        let mut text = String::new();
        stream
            .take(MAX_STATUS_BYTES)
            .read_to_string(&mut text)
            .await?;
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.split([',', '-']).next())
        };
        let mode = field("Mode: ");
        let version = field("Zookeeper version: ");
        match (mode, version) {
            (Some(mode), Some(version)) => Ok(ServerStatus {
                version: version.trim().to_owned(),
                leads: ["leader", "standalone"].contains(&mode.trim()),
            }),
            // A member without a leader says only that it serves nobody.
            _ => Err(io::Error::other(text.trim().to_owned())),
        }
    };
    let too_late = |_| Err(io::ErrorKind::TimedOut.into());
    timeout(within, asking).await.unwrap_or_else(too_late)
}
