use std::collections::BTreeSet;
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

const LOWEST: u16 = 10_000;
const ATTEMPTS: usize = 1000;

/// A port that nobody listens on, for this process only once: a stopped
/// server's port is not another's.
///
/// It is below those that the system gives to outgoing connections. One of
/// them could take the port of a stopped server, or even, trying to reach it,
/// connect to itself.
pub fn free_port() -> u16 {
    static GIVEN: Mutex<BTreeSet<u16>> = Mutex::new(BTreeSet::new());
    let mut given = GIVEN.lock().unwrap_or_else(PoisonError::into_inner);
    let range = LOWEST..first_outgoing().max(2 * LOWEST);
    let mut candidates = (0..ATTEMPTS).map(|_| fastrand::u16(range.clone()));
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    let free = candidates.find(|port| is_free(port) && given.insert(*port));
    free.expect("a free port on loopback")
}

fn first_outgoing() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let range = range.expect("Linux says where outgoing ports begin");
    let first = range.split_whitespace().next();
    let first = first.and_then(|first| first.parse().ok());
    first.expect("two numbers")
}
