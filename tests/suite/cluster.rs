//! What the nemesis needs of a cluster, on real containers.

mod adopted;
mod helpers;
mod kit;
mod network;
mod packets;
mod process;

use crate::support::named;
use fencepost::cluster::topology::Port;
use fencepost::cluster::{Cluster, Helper, NodeSpec, Shared};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Debian with a shell and Redis.
const IMAGE: &str = "fencepost/redis:7.0";
const LONG: Duration = Duration::from_secs(10);

/// A node that runs a script.
fn script(name: &str, script: &str) -> NodeSpec {
    let command = ["sh", "-c", script].map(str::to_owned).into();
    NodeSpec::new(named(name), IMAGE, command)
}

/// A Redis that says `Ready` and answers at its published port.
fn redis(name: &str) -> NodeSpec {
    let server = "exec redis-server --bind 0.0.0.0 --protected-mode no --save ''";
    NodeSpec {
        ports: vec![Port {
            host: 0,
            container: 6379,
        }],
        ready: Some("Ready to accept connections".to_owned()),
        ..script(name, server)
    }
}

fn helper(name: &str, beside: &str, shares: Shared, script: &str) -> Helper {
    Helper {
        name: named(name),
        image: IMAGE.to_owned(),
        command: ["bash", "-c", script].map(str::to_owned).into(),
        beside: named(beside),
        shares,
    }
}

/// What a script prints in the network of a node.
async fn seen_from(cluster: &dyn Cluster, node: &str, script: &str) -> Result<String, String> {
    let looker = helper("looker", node, Shared::Network, script);
    let seen = cluster.run_helper(&looker).await;
    let seen = seen.map_err(|error| error.to_string())?;
    Ok(seen.trim().to_owned())
}

async fn bring_up(cluster: &dyn Cluster, node: &NodeSpec) {
    cluster.create_node(node).await.unwrap();
    bring_back(cluster, node).await;
}

async fn bring_back(cluster: &dyn Cluster, node: &NodeSpec) {
    cluster.start(node).await.unwrap();
    if let Some(ready) = &node.ready {
        cluster.await_said(&node.name, ready).await.unwrap();
    }
}

/// Whether a Redis answers within this time.
fn answers(address: SocketAddr, within: Duration) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, within)?;
        stream.set_read_timeout(Some(within))?;
        stream.write_all(b"PING\r\n")?;
        stream.read_exact(&mut [0; 7])
    };
    ask().is_ok()
}
