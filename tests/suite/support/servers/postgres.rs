use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server, launch};
use std::sync::atomic::{AtomicU32, Ordering};

pub static SINGLE: Shared = Shared::new("postgres");

/// Returns `host:port` of the one Postgres that all tests share. Take a turn on Docker first. It
/// must not be stopped or frozen: see [`own_postgres`].
pub fn postgres_address() -> String {
    let servers = share(&SINGLE, || vec![plan("postgres")]);
    servers[0].address.clone()
}

/// Starts a new Postgres for one test, which is removed when dropped. A stop does not lose its
/// data. Take a turn on Docker first.
pub fn own_postgres() -> Server {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut servers = launch([plan(&format!("own-postgres-{number}"))]);
    servers.remove(0)
}

fn plan(name: &str) -> Plan {
    let port = free_port().to_string();
    let command = ["postgres", "-D", "/data", "-h", "127.0.0.1", "-p", &port];
    // Of a benchmark, two candidates have 64 connections each.
    let settings = [
        "-c",
        "unix_socket_directories=",
        "-c",
        "max_connections=200",
    ];
    let command = [&command[..], &settings].concat();
    Plan {
        container: format!("test-{name}-{}", std::process::id()),
        image: "fencepost/postgres:15",
        address: format!("127.0.0.1:{port}"),
        command: command.into_iter().map(str::to_owned).collect(),
        ready: "database system is ready to accept connections",
    }
}
