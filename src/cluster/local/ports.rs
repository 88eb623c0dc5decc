//! Which port of this machine stands for which port of a node.

use crate::model::Name;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

/// Chosen by the system when first asked for, and the same from then on.
///
/// Each is held by a socket that is bound and does not listen, for as long as
/// the cluster lives. Both it and the server's own socket allow the address to be
/// reused, so the server may listen there, also after a restart; and the system
/// gives the port to nobody else who asks for any. So there is no race to lose.
/// Whoever names it, though, gets it while its server is not there; `listeners.rs`
/// sees that.
#[derive(Default)]
pub struct Ports {
    held: Mutex<BTreeMap<(String, u16), Held>>,
}

struct Held {
    address: SocketAddr,
    _socket: Socket,
}

impl Ports {
    /// All that stand for one of this node.
    pub fn of_node(&self, node: &Name) -> Vec<SocketAddr> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let own = held.iter().filter(|((name, _), _)| name == node);
        own.map(|(_, held)| held.address).collect()
    }

    pub fn of(&self, node: &str, port: u16) -> io::Result<SocketAddr> {
        let mut held = self.held.lock();
        let held = held.as_mut().unwrap_or_else(|poisoned| poisoned.get_mut());
        let name = (node.to_owned(), port);
        if let Some(held) = held.get(&name) {
            return Ok(held.address);
        }
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
        socket.set_reuse_address(true)?;
        socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
        let address = socket.local_addr()?.as_socket();
        let address = address.ok_or_else(|| io::Error::other("no address of IPv4"))?;
        held.insert(
            name,
            Held {
                address,
                _socket: socket,
            },
        );
        Ok(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_held_port_is_listened_at_again_and_again() {
        let ports = Ports::default();
        let address = ports.of("redis", 6379).unwrap();
        assert_eq!(ports.of("redis", 6379).unwrap(), address);
        assert_ne!(ports.of("resource", 6379).unwrap(), address);
        assert!(TcpStream::connect(address).is_err(), "nobody listens yet");
        for _ in 0..2 {
            let server = TcpListener::bind(address).await.unwrap();
            TcpStream::connect(address).unwrap();
            drop(server);
        }
    }

    #[test]
    fn the_system_gives_a_held_port_to_nobody_who_asks_for_any() {
        let ports = Ports::default();
        let held: Vec<SocketAddr> = (0..20)
            .map(|port| ports.of("redis", port).unwrap())
            .collect();
        // Together they are more than chance would spare.
        let others: Vec<_> = (0..500)
            .map(|_| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
            .collect();
        for other in &others {
            let given = other.local_addr().unwrap();
            assert!(!held.contains(&given), "{given}");
        }
    }

    #[test]
    fn a_held_port_is_taken_for_whoever_does_not_share_it() {
        let ports = Ports::default();
        let address = ports.of("redis", 6379).unwrap();
        let somebody = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        let taken = somebody.bind(&address.into()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }
}
