//! Every topology comes up as a run starts it, and a lock server that is ready
//! answers the first time it is asked.

use crate::support::*;
use etcd_client::{Client, ConnectOptions};
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Cluster, NodeSpec, Runtime, Topology, start_services};
use futures_util::future::try_join_all;
use redis::Commands;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(10);

#[tokio::test]
async fn redlock_has_five_nodes_that_answer() {
    started("redlock", async |up| {
        assert_eq!(up.servers.len(), 5);
        for server in &up.servers {
            let () = redis(server).ping().unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn etcd_has_three_members_that_take_writes_as_soon_as_they_are_ready() {
    started("etcd", async |up| {
        assert_eq!(up.servers.len(), 3);
        for (server, count) in up.servers.iter().zip(1..) {
            let options = ConnectOptions::new().with_timeout(LONG);
            let mut member = Client::connect([server], Some(options)).await.unwrap();
            let written = member.put("key", "value", None).await.unwrap();
            let revision = written.header().unwrap().revision();
            assert_eq!(revision, 1 + count, "one cluster, and a fresh one");
        }
    })
    .await;
}

#[tokio::test]
async fn a_durable_redis_remembers_over_a_crash() {
    started("redis-durable", async |up| {
        let () = redis(&up.servers[0]).set("fence", 7).unwrap();
        let container = format!("fencepost-{}-redis", up.run);
        docker_ok(&["kill", "--signal", "KILL", &container]);
        docker_ok(&["wait", &container]);
        docker_ok(&["start", &container]);
        let address = up.cluster.address("redis", 6379).await.unwrap().to_string();
        let fence: u32 = until("the counter", || {
            let client = redis::Client::open(format!("redis://{address}")).unwrap();
            let connection = client.get_connection_with_timeout(LONG);
            connection.ok()?.get("fence").ok()
        });
        assert_eq!(fence, 7);
    })
    .await;
}

/// A topology with all its services started, as a run does it.
struct Up {
    run: String,
    cluster: Arc<dyn Cluster>,
    /// The addresses of the lock servers.
    servers: Vec<String>,
}

/// Starts a topology, looks at it, and removes it whatever was seen.
async fn started(name: &str, look: impl AsyncFnOnce(&Up)) {
    let Some(_turn) = docker_alone() else { return };
    let file = project().join("compose").join(name).with_extension("yml");
    let topology = Topology::load(&file).unwrap();
    let run = format!("test-{name}-{}", std::process::id());
    let runtime = DockerRuntime::connect().await.unwrap();
    let cluster = runtime.create(&run, false).await.unwrap();
    let _removal = Removal(&run);
    let services = topology.started();
    let services: Vec<NodeSpec> = services.map(|(name, service)| service.node(name)).collect();
    start_services(cluster.as_ref(), &services).await.unwrap();
    let servers = topology.lock_servers.iter();
    let servers = try_join_all(servers.map(|server| cluster.address(&server.node, server.port)));
    let servers = servers
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let up = Up {
        run: run.clone(),
        cluster,
        servers,
    };
    look(&up).await;
    up.cluster.remove().await.unwrap();
}

/// What a test that fails leaves behind.
struct Removal<'a>(&'a str);

impl Drop for Removal<'_> {
    fn drop(&mut self) {
        let label = format!("label=fencepost.run={}", self.0);
        let left = docker_ok(&["ps", "-a", "-q", "--filter", &label]);
        for container in left.lines() {
            docker(&["rm", "-f", container]);
        }
        docker(&["network", "rm", &format!("fencepost-{}", self.0)]);
    }
}

fn redis(address: &str) -> redis::Connection {
    let client = redis::Client::open(format!("redis://{address}")).unwrap();
    client.get_connection_with_timeout(LONG).unwrap()
}
