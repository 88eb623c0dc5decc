//! The way from a run's private network to a server that is not on it: this process listens at the
//! network's own address of this machine, and passes on every byte.
//!
//! So a server at this machine's loopback can be reached, and the networks of somebody else's
//! containers stay as they are. Whoever is not on the run's network is turned away.

use super::*;
use std::io;
use std::sync::Arc;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

const CONNECT_DEADLINE: Duration = Duration::from_secs(10);
/// The most connections at a time; others wait in the socket.
const MOST_CONNECTIONS: usize = 4096;

pub struct Relay {
    /// The address for containers of the run's network.
    pub address: SocketAddr,
    /// Where new connections lead to.
    server: Arc<Mutex<SocketAddr>>,
    _serving: AbortOnDropHandle<()>,
}

impl Relay {
    /// Listens at our own address on the network; every connection from there leads to the server.
    pub async fn start(on: Subnet, server: SocketAddr) -> io::Result<Relay> {
        let listener = TcpListener::bind((on.gateway, 0)).await?;
        let address = listener.local_addr()?;
        let server = Arc::new(Mutex::new(server));
        let serving = tokio::spawn(serve(listener, on, server.clone()));
        Ok(Relay {
            address,
            server,
            _serving: AbortOnDropHandle::new(serving),
        })
    }

    /// Leads new connections elsewhere: a server that was started again may have another address.
    pub fn lead_to(&self, server: SocketAddr) {
        *self.server.lock() = server;
    }
}

async fn serve(listener: TcpListener, on: Subnet, server: Arc<Mutex<SocketAddr>>) {
    // The connections end with the relay.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                Ok((_, peer)) if !on.has(peer.ip()) => {}
                Ok((client, _)) => {
                    let server = *server.lock();
                    connections.spawn(pass_on(client, server));
                }
                // Out of file handles, for example: others may end soon.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn pass_on(mut client: TcpStream, server: SocketAddr) {
    let Ok(Ok(mut server)) = timeout(CONNECT_DEADLINE, TcpStream::connect(server)).await else {
        return;
    };
    let _ = client.set_nodelay(true);
    let _ = server.set_nodelay(true);
    // Either side may leave at any time, and the other sees that.
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpSocket;

    async fn server() -> (TcpListener, SocketAddr) {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = server.local_addr().unwrap();
        (server, at)
    }

    /// Starts a relay on a network that is a part of the loopback.
    async fn relay(server: SocketAddr) -> Relay {
        let on = Subnet::parse("127.1.0.1", "127.1.0.0/16").unwrap();
        Relay::start(on, server).await.unwrap()
    }

    async fn client(relay: &Relay, from: [u8; 4]) -> TcpStream {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::from(from), 0).into()).unwrap();
        socket.connect(relay.address).await.unwrap()
    }

    #[tokio::test]
    async fn whoever_is_not_on_the_network_of_the_run_is_turned_away() {
        let ((_server, at), mut byte) = (server().await, [0u8]);
        let relay = relay(at).await;
        for from in [[127, 0, 0, 1], [127, 1, 0, 1]] {
            let turned_away = client(&relay, from).await.read(&mut byte).await;
            assert!(matches!(turned_away, Ok(0) | Err(_)), "{turned_away:?}");
        }
    }

    #[tokio::test]
    async fn a_relay_leads_to_where_the_server_is_now() {
        let ((before, old), (after, new)) = (server().await, server().await);
        let relay = relay(old).await;
        let _first = client(&relay, [127, 1, 0, 2]).await;
        before.accept().await.unwrap();
        relay.lead_to(new);
        let _second = client(&relay, [127, 1, 0, 2]).await;
        after.accept().await.unwrap();
    }

    #[tokio::test]
    async fn a_relay_passes_on_both_ways_and_ends_with_itself() {
        let (server, at) = server().await;
        let relay = relay(at).await;
        let mut client = client(&relay, [127, 1, 0, 2]).await;
        let (mut served, _) = server.accept().await.unwrap();
        client.write_all(b"there").await.unwrap();
        let mut heard = [0; 5];
        served.read_exact(&mut heard).await.unwrap();
        served.write_all(b"back!").await.unwrap();
        client.read_exact(&mut heard).await.unwrap();
        assert_eq!(&heard, b"back!");
        drop(relay);
        let rest = served.read(&mut heard).await;
        assert!(matches!(rest, Ok(0) | Err(_)), "{rest:?}");
    }
}
