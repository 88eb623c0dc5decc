use super::port::free_port;
use super::shared::{Shared, share};
use super::{Plan, Server, launch};
use std::sync::atomic::{AtomicU32, Ordering};

pub static SINGLE: Shared = Shared::new("dynamodb");

/// Returns `host:port` of the one moto that all tests share. Take a turn on Docker first. It must
/// not be stopped or frozen: see [`own_dynamodb`].
pub fn dynamodb_address() -> String {
    let servers = share(&SINGLE, || vec![plan("dynamodb")]);
    servers[0].address.clone()
}

/// Starts a new moto for one test, which is removed when dropped. A stop loses its data. Take a
/// turn on Docker first.
pub fn own_dynamodb() -> Server {
    static COUNT: AtomicU32 = AtomicU32::new(1);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut servers = launch([plan(&format!("own-dynamodb-{number}"))]);
    servers.remove(0)
}

/// Starts moto as its own users start it, with all of its services. A stop loses its data. Take a
/// turn on Docker first.
pub fn own_moto() -> Server {
    let port = free_port().to_string();
    let command = ["/moto/bin/moto_server", "-H", "127.0.0.1", "-p", &port];
    let mut servers = launch([Plan {
        container: format!("test-own-moto-{port}-{}", std::process::id()),
        image: "fencepost/moto:5.2",
        command: command.map(str::to_owned).to_vec(),
        address: format!("127.0.0.1:{port}"),
        ready: "Running on",
    }]);
    servers.remove(0)
}

fn plan(name: &str) -> Plan {
    let address = format!("127.0.0.1:{}", free_port());
    let command = ["/moto/bin/python", "/serve.py", &address];
    Plan {
        container: format!("test-{name}-{}", std::process::id()),
        image: "fencepost/moto:5.2",
        command: command.map(str::to_owned).to_vec(),
        address,
        ready: "moto ready",
    }
}
