//! The members of etcd of a simulated cluster.

use super::process::{Process, Surroundings};
use super::programs::{Observers, serve_at};
use crate::cluster::{ClusterError, ClusterResult, NodeSpec};
use crate::services::EtcdBystander;
use fencing_lock::Env;
use simulated_etcd::{Change, Etcd, Peer, Start};
use std::sync::Arc;

#[derive(Clone)]
pub struct SimulatedEtcd {
    etcd: Etcd,
    /// Where the other members reach it.
    peer_port: u16,
    has_others: bool,
}

/// The exit code of a member that refuses to go on.
const REFUSES: i64 = 1;

/// What a member says before it has a leader; everything else comes with one.
const LISTENS: &str = "serving peer traffic";

/// The options that say what a simulated cluster knows without them.
const WITHOUT_MEANING: [&str; 6] = [
    "--name",
    "--data-dir",
    "--listen-peer-urls",
    "--initial-advertise-peer-urls",
    "--listen-client-urls",
    "--advertise-client-urls",
];

impl SimulatedEtcd {
    pub fn new(node: &NodeSpec) -> ClusterResult<SimulatedEtcd> {
        let name = node.name.as_str();
        let lacks = |word: &str| ClusterError::NotHere {
            what: format!("start {name} with `{word}`"),
        };
        let mut cluster = Vec::new();
        for word in node.command.iter().skip(1) {
            let (option, value) = word.split_once('=').unwrap_or((word, ""));
            match option {
                "--initial-cluster" => cluster.extend(value.split(',').filter_map(peer)),
                option if WITHOUT_MEANING.contains(&option) => {}
                _ => return Err(lacks(word)),
            }
        }
        let own = cluster.iter().find(|peer| peer.name == name);
        let unnamed = || lacks("an --initial-cluster that does not name it");
        Ok(SimulatedEtcd {
            peer_port: own.ok_or_else(unnamed)?.port,
            etcd: Etcd::new(name, &cluster),
            has_others: cluster.len() > 1,
        })
    }

    pub fn start(&self, node: &NodeSpec, process: &Arc<Process>) {
        if self.has_others && self.etcd.is_new() && !process.is_first() {
            // The others say that it was a member before; so it has lost its votes, and ends.
            return process.end(REFUSES);
        }
        let (wall, monotonic) = (process.clone(), process.clone());
        self.etcd.start(Start {
            wall_clock: Box::new(move || wall.wall_clock()),
            monotonic: Box::new(move || monotonic.monotonic()),
            seed: process.random(),
        });
        let own = self.etcd.clone();
        let env = Env::of(Arc::new(Surroundings(process.clone())));
        tokio::spawn(process.task(async move {
            let dial = move |host: String, port| {
                let env = env.clone();
                async move { env.dial(&host, port).await }
            };
            match own.run(dial).await {}
        }));
        let etcd = self.etcd.clone();
        let ports = node.ports.iter().map(|port| port.container);
        serve_at(ports.chain([self.peer_port]), node, process, move |end| {
            let served = etcd.serve(end);
            async move { drop(served.await) }
        });
    }

    pub async fn said(&self, text: &str) {
        if text != LISTENS {
            self.etcd.ready().await;
        }
    }

    /// Reports what happens to locks here, as an observer would.
    pub fn observe(&self, node: &str, observers: &Observers) {
        let bystanders = observers.keys.iter();
        let bystanders = bystanders.map(|keys| EtcdBystander::new(node, keys.as_ref()));
        let mut bystanders: Vec<EtcdBystander> = bystanders.collect();
        let record = observers.record.clone();
        self.etcd.watch(move |changes, look| {
            for bystander in &mut bystanders {
                let rows = changes.iter().flat_map(|change| match *change {
                    Change::Put {
                        key,
                        value,
                        create_revision,
                        lease,
                    } => {
                        let row = bystander.written(key, value, create_revision, lease);
                        row.into_iter().collect()
                    }
                    Change::Deleted { key } => bystander.deleted(key, |it| look.has_lease(it)),
                });
                rows.for_each(&*record);
            }
        });
    }
}

/// Reads `etcd-1=http://etcd-1:2381`.
fn peer(text: &str) -> Option<Peer> {
    let (name, url) = text.split_once('=')?;
    let (host, port) = url.strip_prefix("http://")?.rsplit_once(':')?;
    Some(Peer {
        name: name.to_owned(),
        host: host.to_owned(),
        port: port.parse().ok()?,
    })
}
