//! The listen address of a proxy.

use super::*;
use std::net::{Ipv6Addr, SocketAddr};
use tokio::net::lookup_host;

/// Limits the lookup of names; addresses take no time.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(5);

/// Resolves `host:port`, `:port` or an empty text. Without a host it is every address of
/// the machine; of a name's addresses IPv4 comes first.
pub async fn resolve(listen: &str) -> io::Result<SocketAddr> {
    let everywhere = |port| SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    if listen.is_empty() {
        return Ok(everywhere(0));
    }
    if let Some(port) = listen.strip_prefix(':') {
        let port = port.parse();
        return port.map(everywhere).map_err(|_| unusable("no port"));
    }
    let found = timeout(LOOKUP_DEADLINE, lookup_host(listen)).await;
    let found = found.map_err(|_| unusable("its name was not resolved in 5 s"))??;
    let found: Vec<SocketAddr> = found.collect();
    let first = found.iter().find(|address| address.is_ipv4());
    let first = first.or(found.first());
    first.copied().ok_or_else(|| unusable("no such host"))
}

/// Binds the address. The port of a closed proxy is free at once: tokio sets
/// SO_REUSEADDR.
pub async fn bind(listen: &str) -> Result<TcpListener, String> {
    let bound = async { TcpListener::bind(resolve(listen).await?).await };
    let bound = bound.await;
    bound.map_err(|error| format!("listen tcp {listen}: {error}; choose another listen address"))
}

fn unusable(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason)
}
