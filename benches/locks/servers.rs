//! The tests' own servers: real ones in containers that cannot outlive this
//! program, on the host's network, without the engine's proxy in between.

use crate::{Trouble, placement};
use std::process::Command;

#[path = "../../tests/suite/support"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest of it")]
mod support {
    pub mod docker;
    pub mod said;
    pub mod servers;
    pub mod session;
}

pub use support::docker::docker_ok;
pub use support::servers::{Server, start_together};
use support::servers::{etcd_servers, own_redis};

pub fn build_images() -> Result<(), Trouble> {
    let built = Command::new(env!("CARGO_BIN_EXE_fencepost"))
        .arg("images")
        .output()?;
    match built.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&built.stderr).into()),
    }
}

/// One Redis that keeps nothing on disk: a disk would hide what a lock costs.
pub fn redis() -> Server {
    let server = own_redis();
    placement::place(&server.container);
    server
}

/// Five like it.
pub fn five_redis() -> Vec<Server> {
    (0..5).map(|_| redis()).collect()
}

pub fn three_etcd() -> &'static [Server] {
    let members = etcd_servers();
    for member in members {
        placement::place(&member.container);
    }
    members
}

pub fn addresses<'a>(servers: impl IntoIterator<Item = &'a Server>) -> Vec<String> {
    let servers = servers.into_iter();
    servers.map(|server| server.address.clone()).collect()
}
