//! The listen address of a proxy, with errors in Go's words.

use super::*;
use socket2::SockRef;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpSocket, lookup_host};

/// Limits the lookup of names; addresses take no time.
const LOOKUP_DEADLINE: Duration = Duration::from_secs(5);
const BACKLOG: u32 = 1_024;

/// Resolves `host:port`, `:port` or an empty text. Without a host, or with 0.0.0.0, it is every
/// address of the machine, as in Go; of a name's addresses IPv4 comes first.
pub async fn resolve(listen: &str) -> Result<SocketAddr, String> {
    if listen.is_empty() {
        return Ok(everywhere(0));
    }
    let unusable = |reason: &str| format!("address {listen}: {reason}");
    let (host, port) = listen
        .rsplit_once(':')
        .ok_or_else(|| unusable("missing port in address"))?;
    let port = port_number(port)?;
    let within = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    if within.is_none() && host.contains(':') {
        return Err(unusable("too many colons in address"));
    }
    let host = within.unwrap_or(host);
    if host.is_empty() {
        return Ok(everywhere(port));
    }
    let first = look_up(host, port).await?;
    Ok(match first.ip().is_unspecified() {
        true => everywhere(port),
        false => first,
    })
}

/// Binds the address. The port of a closed proxy is free at once.
pub async fn bind(listen: &str) -> Result<TcpListener, String> {
    let address = resolve(listen).await;
    let address = address.map_err(|error| format!("listen tcp: {error}"))?;
    let is_everywhere = address.ip().is_unspecified();
    let bound = match listen_at(address) {
        Err(error) if is_everywhere && has_no_ipv6(&error) => {
            listen_at((Ipv4Addr::UNSPECIFIED, address.port()).into())
        }
        bound => bound,
    };
    bound.map_err(|error| {
        let shown = match is_everywhere {
            true => listen.to_owned(),
            false => address.to_string(),
        };
        format!("listen tcp {shown}: bind: {}", in_words_of_go(&error))
    })
}

fn everywhere(port: u16) -> SocketAddr {
    (Ipv6Addr::UNSPECIFIED, port).into()
}

fn port_number(port: &str) -> Result<u16, String> {
    match port.parse() {
        Ok(number) => Ok(number),
        Err(_) if port.is_empty() => Ok(0),
        Err(_) if port.parse::<f64>().is_ok() => Err(format!("address {port}: invalid port")),
        Err(_) => Err(format!("lookup tcp/{port}: unknown port")),
    }
}

async fn look_up(host: &str, port: u16) -> Result<SocketAddr, String> {
    let unknown = |reason: &str| format!("lookup {host}: {reason}");
    let found = timeout(LOOKUP_DEADLINE, lookup_host((host, port))).await;
    let found = found.map_err(|_| unknown("i/o timeout"))?;
    let found: Vec<SocketAddr> = found.map_err(|_| unknown("no such host"))?.collect();
    let first = found.iter().find(|address| address.is_ipv4());
    let first = first.or(found.first());
    first.copied().ok_or_else(|| unknown("no such host"))
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if address.is_ipv6() && address.ip().is_unspecified() {
        // Every address includes those of IPv4, whatever the system's default is.
        SockRef::from(&socket).set_only_v6(false)?;
    }
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

fn has_no_ipv6(error: &io::Error) -> bool {
    use nix::errno::Errno;
    let known = [Errno::EAFNOSUPPORT, Errno::EADDRNOTAVAIL].map(|errno| errno as i32);
    error.raw_os_error().is_some_and(|it| known.contains(&it))
}

/// Returns `address already in use` for `Address already in use (os error 98)`.
fn in_words_of_go(error: &io::Error) -> String {
    let shown = error.to_string();
    let words = shown.split(" (os error").next().unwrap_or_default();
    words.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_address_that_cannot_be_resolved_is_told_in_the_words_of_go() {
        for (listen, told) in [
            ("x", "address x: missing port in address"),
            ("::1:80", "address ::1:80: too many colons in address"),
            ("127.0.0.1:99999", "address 99999: invalid port"),
            ("127.0.0.1:x", "lookup tcp/x: unknown port"),
            (
                "no.such.host.invalid:1",
                "lookup no.such.host.invalid: no such host",
            ),
        ] {
            assert_eq!(resolve(listen).await, Err(told.to_owned()));
        }
    }

    #[tokio::test]
    async fn every_address_is_one_whatever_it_is_called() {
        for listen in [":7", "0.0.0.0:7", "[::]:7"] {
            assert_eq!(resolve(listen).await, Ok(everywhere(7)));
        }
        assert_eq!(resolve("").await, Ok(everywhere(0)));
        assert_eq!(resolve("127.0.0.1:").await, Ok(([127, 0, 0, 1], 0).into()));
        assert_eq!(
            resolve("[::1]:7").await,
            Ok((Ipv6Addr::LOCALHOST, 7).into())
        );
    }
}
