use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server, launch};
use std::sync::atomic::{AtomicU32, Ordering};

pub static SINGLE: Shared = Shared::new("consul");

/// Returns `host:port` of the one Consul that all tests share. Take a turn on Docker first. It
/// must not be stopped or frozen: see [`own_consul`].
pub fn consul_address() -> String {
    let servers = share(&SINGLE, || vec![plan("consul", &[])]);
    servers[0].address.clone()
}

/// Starts a new Consul for one test, which is removed when dropped. A stop does not lose its
/// data. With options it may have no leader, so it counts as ready when it listens. Take a turn
/// on Docker first.
pub fn own_consul(options: &[&str]) -> Server {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut servers = launch([plan(&format!("own-consul-{number}"), options)]);
    servers.remove(0)
}

fn plan(name: &str, options: &[&str]) -> Plan {
    let [http, serf, raft] = [(); 3].map(|()| free_port().to_string());
    let command = "consul agent -server -bootstrap-expect=1 -node=consul -data-dir=/data \
                   -bind=127.0.0.1 -client=127.0.0.1 -dns-port=-1 -grpc-port=-1 \
                   -serf-wan-port=-1 -disable-host-node-id";
    let command = command.split_whitespace().map(str::to_owned);
    let ports = [("http", &http), ("serf-lan", &serf), ("server", &raft)];
    let ports = ports.map(|(what, port)| format!("-{what}-port={port}"));
    let hcl = r#"-hcl=session_ttl_min="1s" performance { raft_multiplier=1 }"#;
    let options = options.iter().map(|option| (*option).to_owned());
    let ready = match options.len() {
        0 => "Synced node info",
        _ => "Started HTTP server",
    };
    Plan {
        container: format!("test-{name}-{}", std::process::id()),
        image: "fencepost/consul:1.8",
        address: format!("127.0.0.1:{http}"),
        command: command
            .chain(ports)
            .chain([hcl.to_owned()])
            .chain(options)
            .collect(),
        ready,
    }
}
