use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server, launch};
use std::sync::atomic::{AtomicU32, Ordering};

pub static MEMBERS: Shared = Shared::new("zookeeper");

/// Returns an ensemble of three ZooKeeper members. Take a turn on Docker first; to stop or freeze a
/// member, it has to be `docker_alone`.
pub fn zookeeper_servers() -> &'static [Server] {
    share(&MEMBERS, || {
        let peers: Vec<String> = (0..3)
            .map(|_| format!("127.0.0.1:{}:{}", free_port(), free_port()))
            .collect();
        let plans = (1..=3).map(|id| plan(&format!("zookeeper-{id}"), id, &peers));
        plans.collect()
    })
}

/// Starts a new ZooKeeper of one member for one test, which is removed when dropped. A stop does
/// not lose its data. Take a turn on Docker first.
pub fn own_zookeeper() -> Server {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut servers = launch([plan(&format!("own-zookeeper-{number}"), 1, &[])]);
    servers.remove(0)
}

fn plan(name: &str, id: u32, peers: &[String]) -> Plan {
    let address = format!("127.0.0.1:{}", free_port());
    let command = [
        "zookeeper-member".to_owned(),
        address.clone(),
        id.to_string(),
    ];
    Plan {
        container: format!("test-{name}-{}", std::process::id()),
        image: "fencepost/zookeeper:3.8",
        address,
        command: command.into_iter().chain(peers.iter().cloned()).collect(),
        ready: match peers {
            [] => "PrepRequestProcessor (sid:0) started",
            _ => " - broadcast",
        },
    }
}
