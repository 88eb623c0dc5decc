//! The ports of this machine that are used for the ports of nodes.

use super::*;
use socket2::{Domain, Protocol, Socket, Type};

/// Well-known ports of services are mostly below this.
const LOWEST: u16 = 20_000;
const TRIES: usize = 100;

/// The ports of a cluster. Each is chosen when it is first asked for, and is the same from then on.
///
/// Each port is held by a socket that is bound and does not listen, for as long as the cluster
/// lives. This socket and the server's own allow the address to be reused, so the server can
/// listen there, also after a restart, and the system does not give the port to a program that
/// asks for any free port. A program that asks for this port by number gets it while the server is
/// down; `listeners.rs` detects that.
///
/// Docker asks for ports by number: it publishes those of containers at one port of the system's
/// own range after the other. So the ports held here are below that range.
#[derive(Default)]
pub struct Ports {
    held: Mutex<BTreeMap<(String, u16), HeldPort>>,
}

struct HeldPort {
    address: SocketAddr,
    _socket: Socket,
}

impl Ports {
    /// Returns all ports that are held for this node.
    pub fn of_node(&self, node: &Name) -> Vec<SocketAddr> {
        let held = self.held.lock();
        let own = held.iter().filter(|((name, _), _)| name == node);
        own.map(|(_, held)| held.address).collect()
    }

    pub fn of(&self, node: &str, port: u16) -> io::Result<SocketAddr> {
        let mut held = self.held.lock();
        let name = (node.to_owned(), port);
        if let Some(held) = held.get(&name) {
            return Ok(held.address);
        }
        let socket = hold(first_of_the_system()?)?;
        let address = socket.local_addr()?.as_socket();
        let address = address.ok_or_else(|| io::Error::other("no address of IPv4"))?;
        held.insert(
            name,
            HeldPort {
                address,
                _socket: socket,
            },
        );
        Ok(address)
    }
}

/// Holds a free port below the range from which the system chooses; or one of that range, if there
/// is no room below it.
fn hold(first_of_the_system: u16) -> io::Result<Socket> {
    let below = LOWEST..first_of_the_system;
    for _ in 0..below.len().min(TRIES) {
        match hold_port(fastrand::u16(below.clone())) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
            held_or_failed => return held_or_failed,
        }
    }
    hold_port(0)
}

/// Holds this port. Reuse of the address is allowed only once the port is ours, because another run
/// may hold it.
fn hold_port(port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into())?;
    socket.set_reuse_address(true)?;
    Ok(socket)
}

/// Returns the first port of the range from which the system chooses.
fn first_of_the_system() -> io::Result<u16> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?;
    let first = text.split_whitespace().next();
    let first = first.and_then(|first| first.parse().ok());
    first.ok_or_else(|| io::Error::other(format!("not a range of ports: {text:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;
    use tokio::net::TcpListener;

    fn address(socket: &Socket) -> SocketAddr {
        socket.local_addr().unwrap().as_socket().unwrap()
    }

    /// Tries again for a while: a child that another test has just forked has our old listener
    /// too, until it is a program of its own.
    async fn listen(address: SocketAddr) -> TcpListener {
        let give_up_at = std::time::Instant::now() + Duration::from_secs(30);
        loop {
            match TcpListener::bind(address).await {
                Ok(listener) => return listener,
                Err(error) if std::time::Instant::now() > give_up_at => panic!("{error}"),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    #[tokio::test]
    async fn a_held_port_is_listened_at_again_and_again() {
        let ports = Ports::default();
        let address = ports.of("redis", 6379).unwrap();
        assert_eq!(ports.of("redis", 6379).unwrap(), address);
        assert_ne!(ports.of("resource", 6379).unwrap(), address);
        assert!(TcpStream::connect(address).is_err(), "nobody listens yet");
        for _ in 0..2 {
            let server = listen(address).await;
            TcpStream::connect(address).unwrap();
            drop(server);
        }
    }

    #[test]
    fn the_system_gives_a_held_port_to_nobody_who_asks_for_any() {
        let held: Vec<Socket> = (0..20).map(|_| hold_port(0).unwrap()).collect();
        let addresses: Vec<SocketAddr> = held.iter().map(address).collect();
        // Together they are more than chance would spare.
        let others: Vec<_> = (0..500)
            .map(|_| std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap())
            .collect();
        for other in &others {
            let given = other.local_addr().unwrap();
            assert!(!addresses.contains(&given), "{given}");
        }
    }

    #[test]
    fn a_held_port_is_not_one_that_docker_publishes_at() {
        let first = first_of_the_system().unwrap();
        let port = |socket: Socket| address(&socket).port();
        assert!((LOWEST..first).contains(&port(hold(first).unwrap())));
        // Without room below, any port will do.
        assert!(port(hold(1_024).unwrap()) >= first);
    }

    #[test]
    fn a_port_is_held_once() {
        let ports = Ports::default();
        let address = ports.of("redis", 6379).unwrap();
        let taken = hold_port(address.port()).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
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
