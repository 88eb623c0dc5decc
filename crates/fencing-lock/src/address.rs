#[cfg(any(feature = "dynamodb", feature = "etcd"))]
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

/// Reads `host:port` or `http://host:port`.
#[cfg(any(feature = "dynamodb", feature = "etcd"))]
pub(crate) fn http_server(address: &str) -> Result<(String, u16), LockProblem> {
    let bad = |reason: &str| LockProblem::BadAddress {
        address: without_password(address),
        reason: reason.to_owned(),
    };
    let plain = address.strip_prefix("http://").unwrap_or(address);
    if plain.starts_with("https://") {
        return Err(bad("TLS is not supported"));
    }
    let Some((host, port)) = plain.rsplit_once(':') else {
        return Err(bad("the port is missing"));
    };
    let is_host = |c: char| c.is_ascii_alphanumeric() || ".-_[]:".contains(c);
    if host.is_empty() || !host.chars().all(is_host) {
        return Err(bad("this is no name of a host"));
    }
    match port.parse::<u16>() {
        Ok(port @ 1..) => Ok((host.trim_matches(['[', ']']).to_owned(), port)),
        _ => Err(bad("the port is no number from 1 to 65535")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(any(feature = "dynamodb", feature = "etcd"))]
    #[test]
    fn addresses_that_cannot_be_meant_are_refused() {
        for (good, host) in [
            ("etcd-1:2379", "etcd-1"),
            ("127.0.0.1:2379", "127.0.0.1"),
            ("http://[::1]:2379", "::1"),
        ] {
            assert_eq!(http_server(good), Ok((host.to_owned(), 2379)), "{good}");
        }
        for bad in [
            "",
            "etcd",
            "etcd:",
            ":2379",
            "etcd:0",
            "a b:2379",
            "https://etcd:2379",
        ] {
            let problem = http_server(bad).expect_err(bad);
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
