use super::*;
use crate::run::ServerAddresses;
use futures_util::future::join_all;
use std::net::Ipv6Addr;
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_DEADLINE: Duration = Duration::from_secs(3);

/// Describes each address that is malformed or given twice.
pub fn mistakes_in_addresses(servers: &ServerAddresses) -> Vec<String> {
    let given: Vec<(&str, &String)> = servers.all().collect();
    let mut mistakes = Vec::new();
    for (place, (program, address)) in given.iter().enumerate() {
        if address.contains('@') {
            // Do not repeat a password: somebody else may see the screen.
            mistakes.push(format!(
                "--{program}: an address is HOST:PORT, such as 127.0.0.1:6379, without scheme, user or password"
            ));
        } else if !is_address(address) {
            mistakes.push(format!(
                "--{program}: `{address}` is not an address; write it like 127.0.0.1:6379"
            ));
        } else if given[..place].contains(&(*program, *address)) {
            mistakes.push(format!(
                "--{program}: {address} is named twice, and one server counts once"
            ));
        }
    }
    mistakes
}

/// Returns whether the text is `HOST:PORT`; an IPv6 host must be in brackets.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => {
            let may_be = |c: char| c.is_alphanumeric() || "-._".contains(c);
            !host.is_empty() && host.chars().all(may_be)
        }
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// Fails and names the addresses where no server accepts a connection.
pub async fn must_answer(servers: &ServerAddresses) -> Result<(), Failure> {
    let asked = servers.all().map(|(program, address)| async move {
        let reason = match timeout(ANSWER_DEADLINE, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("nothing came within {} s", ANSWER_DEADLINE.as_secs()),
        };
        Some(format!("--{program}: {address} does not answer: {reason}"))
    });
    let silent: Vec<String> = join_all(asked).await.into_iter().flatten().collect();
    if silent.is_empty() {
        Ok(())
    } else {
        Err(Failure::new(Exit::Unavailable, silent.join("\n")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port() {
        for right in [
            "127.0.0.1:6379",
            "redis-1.local:6379",
            "[::1]:2379",
            "h_1:1",
        ] {
            assert!(is_address(right), "{right}");
        }
        for wrong in [
            "here",
            ":6379",
            "h:",
            "h:0",
            "h:65536",
            "::1:6379",
            "[here]:1",
            "redis://h:6379",
            "http://h:2379",
            "h:6379/0",
            "a b:1",
        ] {
            assert!(!is_address(wrong), "{wrong}");
        }
    }
}
