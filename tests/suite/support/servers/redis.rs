use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server, launch};
use std::sync::atomic::{AtomicU32, Ordering};

pub static SINGLE: Shared = Shared::new("redis");
pub static REDLOCK: Shared = Shared::new("redlock");

const FORGETS: [&str; 2] = ["--appendonly", "no"];
/// Every write is on disk before it is answered.
const DURABLE: [&str; 6] = [
    "--dir",
    "/data",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
];

/// Returns `host:port` of the one Redis that all tests share. Take a turn on Docker first. It
/// must not be stopped or frozen: see [`own_redis`].
pub fn redis_address() -> String {
    single().address.clone()
}

/// Returns the name of its container, which has the same image as a run's Redis and does not
/// belong to a run.
pub fn redis_container() -> &'static str {
    &single().container
}

/// Returns five independent Redis nodes that keep their data over a restart. Take a turn on
/// Docker first; to stop or freeze a node, it has to be `docker_alone`.
pub fn redlock_servers() -> &'static [Server] {
    share(&REDLOCK, || {
        let names = (1..=5).map(|node| format!("redlock-{node}"));
        names.map(|name| plan(&name, &DURABLE)).collect()
    })
}

/// Starts a new Redis for one test, which is removed when dropped and loses its data when
/// stopped. Take a turn on Docker first.
pub fn own_redis() -> Server {
    own(&FORGETS)
}

/// Does the same as [`own_redis`], but a stop does not lose the data.
pub fn own_durable_redis() -> Server {
    own(&DURABLE)
}

fn single() -> &'static Server {
    let servers = share(&SINGLE, || vec![plan("redis", &FORGETS)]);
    &servers[0]
}

fn own(persistence: &[&str]) -> Server {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut servers = launch([plan(&format!("own-redis-{number}"), persistence)]);
    servers.remove(0)
}

fn plan(name: &str, persistence: &[&str]) -> Plan {
    let port = free_port().to_string();
    let command = ["redis-server", "--bind", "127.0.0.1", "--port", &port];
    let debug = ["--enable-debug-command", "yes"];
    let command = [&command[..], &debug, &["--save", ""], persistence].concat();
    Plan {
        container: format!("test-{name}-{}", std::process::id()),
        image: "fencepost/redis:7.0",
        address: format!("127.0.0.1:{port}"),
        command: command.into_iter().map(str::to_owned).collect(),
        ready: "Ready to accept connections",
    }
}
