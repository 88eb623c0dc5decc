use super::topology::Endpoint;
use std::net::{IpAddr, SocketAddr};

/// How a proxy stands between its source and a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// Where the proxy listens.
    pub listen: String,
    /// What the proxy connects to.
    pub upstream: String,
    /// Where the source finds the proxy.
    pub found_at: SocketAddr,
    /// What the source says to get there.
    pub called: String,
}

impl Way {
    /// Where the names of servers lead their sources to the proxy, which has the
    /// servers' own ports.
    pub fn by_name(server: &Endpoint, proxy: IpAddr) -> Way {
        let Endpoint { node, port } = server;
        Way {
            listen: format!("0.0.0.0:{port}"),
            upstream: format!("{node}:{port}"),
            found_at: SocketAddr::new(proxy, *port),
            called: format!("{node}:{port}"),
        }
    }

    /// Where everybody has to be told an address.
    pub fn by_address(proxy: SocketAddr, server: SocketAddr) -> Way {
        Way {
            listen: proxy.to_string(),
            upstream: server.to_string(),
            found_at: proxy,
            called: proxy.to_string(),
        }
    }
}
