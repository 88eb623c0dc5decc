use super::super::session;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

const LOWEST: u16 = 10_000;
const ATTEMPTS: usize = 1000;

/// Returns a port that nobody listens on and that no other test of this run gets while this
/// process lives, so that the port of a stopped server is not given to another.
///
/// It is below the ports that the system gives to outgoing connections. Such a connection could
/// take the port of a stopped server, or even connect to itself while trying to reach it.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<Vec<Flock<File>>> = Mutex::new(Vec::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let range = LOWEST..first_outgoing().max(2 * LOWEST);
    let mut candidates = (0..ATTEMPTS).map(|_| fastrand::u16(range.clone()));
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let lock = |port: u16| {
        let file = session::folder().join(format!("port-{port}"));
        session::try_lock(&file, FlockArg::LockExclusiveNonblock)
    };
    let free = candidates.find_map(|port| Some((port, is_free(&port).then(|| lock(port))??)));
    let (port, lock) = free.expect("a free port on loopback");
    given.push(lock);
    port
}

fn first_outgoing() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.expect("Linux says where outgoing ports begin");
    let first = range.split_whitespace().next();
    let first = first.and_then(|first| first.parse().ok());
    first.expect("two numbers")
}
