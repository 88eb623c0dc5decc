#[cfg(any(
    feature = "consul",
    feature = "dynamodb",
    feature = "etcd",
    feature = "memory"
))]
use crate::LockProblem;

/// Returns the address without user and password, so that it may be shown.
pub fn without_password(address: &str) -> String {
    let (scheme, rest) = match address.find("://") {
        Some(end) => address.split_at(end + 3),
        None => ("", address),
    };
    match rest.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}***@{host}"),
        None => address.to_owned(),
    }
}

/// Reads `host:port` or `http://host:port`. Without a default, the port has to be there.
#[cfg(any(
    feature = "consul",
    feature = "dynamodb",
    feature = "etcd",
    feature = "memory"
))]
pub(crate) fn http_server(
    address: &str,
    default_port: Option<u16>,
) -> Result<(String, u16), LockProblem> {
    let bad = |reason: &str| LockProblem::BadAddress {
        address: without_password(address),
        reason: reason.to_owned(),
    };
    let plain = address.strip_prefix("http://").unwrap_or(address);
    let plain = plain.strip_suffix('/').unwrap_or(plain);
    if plain.starts_with("https://") {
        return Err(bad("TLS is not supported"));
    }
    let (host, port) = match plain.rsplit_once(':') {
        // The last colon of an IPv6 address without a port is within its brackets.
        Some((host, port)) if !port.ends_with(']') => (host, port.parse::<u16>().ok()),
        _ => (plain, default_port),
    };
    let in_brackets = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match in_brackets {
        Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !host.is_empty()
                && host
                    .chars()
                    .all(|c| c.is_alphanumeric() || "-._".contains(c))
        }
    };
    if !is_host {
        return Err(bad("it does not name a host"));
    }
    match port {
        Some(port @ 1..) => Ok((in_brackets.unwrap_or(host).to_owned(), port)),
        _ => Err(bad("it does not end with a port from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(
        feature = "consul",
        feature = "dynamodb",
        feature = "etcd",
        feature = "memory"
    ))]
    #[test]
    fn addresses_that_cannot_be_meant_are_refused() {
        for (good, host) in [
            ("etcd-1:2379", "etcd-1"),
            ("127.0.0.1:2379", "127.0.0.1"),
            ("http://[::1]:2379", "::1"),
            ("http://etcd-1:2379/", "etcd-1"),
        ] {
            assert_eq!(
                http_server(good, None),
                Ok((host.to_owned(), 2379)),
                "{good}"
            );
        }
        for (good, host) in [("consul", "consul"), ("[::1]", "::1")] {
            assert_eq!(http_server(good, Some(7)), Ok((host.to_owned(), 7)));
        }
        for bad in [
            "",
            "etcd",
            "etcd:",
            ":2379",
            "etcd:0",
            "a b:2379",
            "h:1:2",
            "redis://h:1",
            "http://h:1/path",
            "https://etcd:2379",
        ] {
            let problem = http_server(bad, None).expect_err(bad);
            assert!(problem.to_string().contains(bad), "{problem}");
        }
    }

    #[test]
    fn a_password_is_not_shown_however_wrong_the_rest_is() {
        for (address, shown) in [
            ("127.0.0.1:6379", "127.0.0.1:6379"),
            ("redis://h:1/0", "redis://h:1/0"),
            ("redis://:s3cret@127.0.0.1:x", "redis://***@127.0.0.1:x"),
            ("user:s3cret@h", "***@h"),
            ("redis://:s3@cr/et@h:1", "redis://***@h:1"),
            ("", ""),
        ] {
            assert_eq!(without_password(address), shown);
        }
    }
}
