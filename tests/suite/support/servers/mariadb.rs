use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server, launch};
use std::sync::atomic::{AtomicU32, Ordering};

pub static SINGLE: Shared = Shared::new("mariadb");

/// Returns `host:port` of the one MariaDB that all tests share. Take a turn on Docker first. It
/// must not be stopped or frozen: see [`own_mariadb`].
pub fn mariadb_address() -> String {
    let servers = share(&SINGLE, || vec![plan("mariadb")]);
    servers[0].address.clone()
}

/// Starts a new MariaDB for one test, which is removed when dropped. A stop does not lose its
/// data. Take a turn on Docker first.
pub fn own_mariadb() -> Server {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut servers = launch([plan(&format!("own-mariadb-{number}"))]);
    servers.remove(0)
}

fn plan(name: &str) -> Plan {
    let port = free_port();
    let command = format!(
        "mariadbd --no-defaults --datadir=/data --bind-address=127.0.0.1 --port={port} \
         --socket=socket --skip-name-resolve --innodb-buffer-pool-size=32M \
         --innodb-log-file-size=8M --max-connections=500"
    );
    Plan {
        container: format!("test-{name}-{}", std::process::id()),
        image: "fencepost/mariadb:10.11",
        address: format!("127.0.0.1:{port}"),
        command: command.split_whitespace().map(str::to_owned).collect(),
        ready: "ready for connections",
    }
}
