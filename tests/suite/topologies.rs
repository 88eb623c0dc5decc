//! Every topology comes up as a run starts it, and a lock server that is ready
//! answers the first time it is asked.

use crate::support::*;
use etcd_client::{Client, ConnectOptions};
use fencepost::cluster::topology::{Endpoint, load_service};
use fencepost::cluster::{NodeSpec, Signal, Topology, start_services};
use futures_util::future::try_join_all;
use redis::Commands;
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
        let cluster = &up.cluster;
        cluster.signal(&named("redis"), Signal::Kill).await.unwrap();
        cluster.await_end(&named("redis")).await.unwrap();
        let topology = Topology::load(project().join("compose/redis-durable.yml")).unwrap();
        let node = topology.services["redis"].node(&named("redis"));
        cluster.start(&node).await.unwrap();
        cluster
            .await_said(&named("redis"), &node.ready.unwrap())
            .await
            .unwrap();
        let address = cluster.address(&named("redis"), 6379).await.unwrap();
        let fence: u32 = redis(&address.to_string()).get("fence").unwrap();
        assert_eq!(fence, 7);
    })
    .await;
}

#[tokio::test]
async fn a_replica_is_ready_when_it_has_what_its_primary_has() {
    started("redis-replica", async |up| {
        let mut primary = redis(&up.servers[0]);
        let () = primary.set("key", "copied").unwrap();
        let wait = redis::cmd("WAIT").arg(1).arg(10_000).clone();
        let copies: u32 = wait.query(&mut primary).unwrap();
        assert_eq!(copies, 1, "it was not ready");
        let replica = up
            .cluster
            .address(&named("redis-replica"), 6379)
            .await
            .unwrap();
        let mut replica = redis(&replica.to_string());
        let copied: String = replica.get("key").unwrap();
        assert_eq!(copied, "copied");
        let refused: Result<(), _> = replica.set("key", "other");
        assert_eq!(refused.unwrap_err().code(), Some("READONLY"));
    })
    .await;
}

#[test]
fn members_and_replicas_say_whom_they_connect_to() {
    let topologies = Topology::load_all([project().join("compose")]).unwrap();
    let links = |name: &str| -> Vec<String> {
        let links = topologies[name].links();
        let each = links.flat_map(|(from, links)| {
            let shown = move |to: &Endpoint| format!("{from} -> {}:{}", to.node, to.port);
            links.iter().map(shown)
        });
        each.collect()
    };
    assert_eq!(
        links("etcd"),
        [
            "etcd-1 -> etcd-2:2382",
            "etcd-1 -> etcd-3:2383",
            "etcd-2 -> etcd-1:2381",
            "etcd-2 -> etcd-3:2383",
            "etcd-3 -> etcd-1:2381",
            "etcd-3 -> etcd-2:2382",
        ]
    );
    assert_eq!(links("redis-replica"), ["redis-replica -> redis:6379"]);
    let of_postgres = links("postgres-replica");
    assert_eq!(of_postgres, ["postgres-replica -> postgres:5432"]);
    assert_eq!(links("redlock"), [""; 0]);
    let replica = &topologies["redis-replica"].services["redis-replica"];
    assert_eq!(replica.replica_of.as_deref(), Some("redis"));
}

#[test]
fn every_proxy_is_started_from_one_service() {
    let file = project().join("toxiproxy/server.yml");
    let server = load_service(&file, "toxiproxy").unwrap();
    let node = server.node(&named("proxy-of-a"));
    assert_eq!(node.ports[0].container, 8474);
    assert!(node.ready.is_some());
}

/// A topology with all its services started, as a run does it.
struct Up {
    cluster: OwnCluster,
    /// The addresses of the lock servers.
    servers: Vec<String>,
}

/// Starts a topology, looks at it, and removes it whatever was seen.
async fn started(name: &str, look: impl AsyncFnOnce(&Up)) {
    let cluster = own_cluster(name).await;
    let file = project().join("compose").join(name).with_extension("yml");
    let topology = Topology::load(&file).unwrap();
    let services = topology.started();
    let services: Vec<NodeSpec> = services.map(|(name, service)| service.node(name)).collect();
    start_services(&*cluster, &services).await.unwrap();
    let servers = topology
        .workers
        .iter()
        .flat_map(|worker| &worker.lock_servers);
    let servers = try_join_all(servers.map(|server| cluster.address(&server.node, server.port)));
    let servers = servers
        .await
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    let up = Up { cluster, servers };
    look(&up).await;
    up.cluster.remove().await.unwrap();
}

fn redis(address: &str) -> redis::Connection {
    let client = redis::Client::open(format!("redis://{address}")).unwrap();
    client.get_connection_with_timeout(LONG).unwrap()
}
