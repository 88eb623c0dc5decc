use crate::cli::exit::{Exit, Failure};
use crate::run::ServerAddresses;
use clap::Args;
use futures_util::future::join_all;
use std::net::Ipv6Addr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

const ANSWER_DEADLINE: Duration = Duration::from_secs(3);

#[derive(Args)]
pub struct Servers {
    /// A Redis; several are the independent nodes of Redlock
    #[arg(long, value_delimiter = ',', value_name = "HOST:PORT")]
    pub redis: Vec<String>,
    /// The members of an etcd cluster
    #[arg(long, value_delimiter = ',', value_name = "HOST:PORT")]
    pub etcd: Vec<String>,
}

impl Servers {
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &String)> {
        let redis = self.redis.iter().map(|address| ("--redis", address));
        redis.chain(self.etcd.iter().map(|address| ("--etcd", address)))
    }
}

impl From<Servers> for ServerAddresses {
    fn from(Servers { redis, etcd }: Servers) -> ServerAddresses {
        ServerAddresses { redis, etcd }
    }
}

/// What is no address, or is there twice, in words.
pub fn mistakes_in_addresses(servers: &Servers) -> Vec<String> {
    let given: Vec<(&str, &String)> = servers.all().collect();
    let mut mistakes = Vec::new();
    for (place, (option, address)) in given.iter().enumerate() {
        if address.contains('@') {
            // A password is not repeated where somebody may look on.
            mistakes.push(format!(
                "{option}: an address is HOST:PORT, such as 127.0.0.1:6379, without scheme, user or password"
            ));
        } else if !is_address(address) {
            mistakes.push(format!(
                "{option}: `{address}` is no address; write such as 127.0.0.1:6379"
            ));
        } else if given[..place].contains(&(*option, *address)) {
            mistakes.push(format!(
                "{option}: {address} is named twice, and one server counts once"
            ));
        }
    }
    mistakes
}

/// `HOST:PORT`; a host of IPv6 stands in brackets.
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

/// Whether somebody listens at every address; whoever does not is named.
pub async fn must_answer(servers: &Servers) -> Result<(), Failure> {
    let asked = servers.all().map(|(option, address)| async move {
        let reason = match timeout(ANSWER_DEADLINE, TcpStream::connect(address)).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("nothing came within {} s", ANSWER_DEADLINE.as_secs()),
        };
        Some(format!("{option}: {address} does not answer: {reason}"))
    });
    let silent: Vec<String> = join_all(asked).await.into_iter().flatten().collect();
    match silent.is_empty() {
        true => Ok(()),
        false => Err(Failure::new(Exit::Unavailable, silent.join("\n"))),
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
