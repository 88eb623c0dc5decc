use super::*;

/// The route from a source through its proxy to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyRoute {
    pub listen: String,
    pub upstream: String,
    pub found_at: SocketAddr,
    /// The address that the source dials.
    pub called: String,
}

impl ProxyRoute {
    /// Returns the route if the names of servers lead their sources to the proxy, which has the
    /// servers' own ports.
    pub fn by_name(server: &Endpoint, proxy: IpAddr) -> ProxyRoute {
        let Endpoint { node, port } = server;
        ProxyRoute {
            listen: format!("0.0.0.0:{port}"),
            upstream: format!("{node}:{port}"),
            found_at: SocketAddr::new(proxy, *port),
            called: format!("{node}:{port}"),
        }
    }

    /// Returns the route if every node has to be told an address.
    pub fn by_address(proxy: SocketAddr, server: SocketAddr) -> ProxyRoute {
        ProxyRoute {
            listen: proxy.to_string(),
            upstream: server.to_string(),
            found_at: proxy,
            called: proxy.to_string(),
        }
    }
}
