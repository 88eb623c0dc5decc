use super::ZookeeperSettings;
use super::failure::Failure;
use crate::{Env, LockProblem, without_password};
use prometheus_client::metrics::counter::Counter;
use std::time::Duration;
use tokio::time::timeout;
use zookeeper_client::Client;

/// The servers of one ensemble. A session is with one of them, and moves on to the next.
///
/// The client library opens the connections, so a simulation cannot play them.
pub(super) struct Servers {
    /// All addresses, for the client library and for errors.
    addresses: String,
    settings: ZookeeperSettings,
    requests: Counter,
    env: Env,
}

impl Servers {
    pub(super) fn new(
        addresses: &[String],
        settings: ZookeeperSettings,
        env: Env,
    ) -> Result<Servers, LockProblem> {
        if addresses.is_empty() {
            let problem = "at least one ZooKeeper server is needed, and none is named";
            return Err(LockProblem::BadServers(problem.to_owned()));
        }
        for address in addresses {
            check_address(address)?;
        }
        Ok(Servers {
            addresses: addresses.join(","),
            settings,
            requests: Counter::default(),
            env,
        })
    }

    pub(super) fn node(&self) -> &str {
        &self.addresses
    }

    pub(super) fn requests(&self) -> &Counter {
        &self.requests
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    /// Returns the time limit of a request.
    pub(super) fn limit(&self) -> Duration {
        self.settings.response_timeout
    }

    /// Returns the failure of a request that was not answered in time.
    pub(super) fn silent(&self) -> Failure {
        Failure::Unanswered(format!("not within {} ms", self.limit().as_millis()))
    }

    /// Opens a session with the first server that offers one.
    pub(super) async fn connect(&self, ttl: Duration) -> Result<Client, Failure> {
        self.requests.inc();
        // A silent server has to leave time for another one.
        let silence = self.settings.silence_max.min(ttl / 4);
        let connecting = Client::connector()
            .with_session_timeout(ttl)
            .with_connection_timeout(silence)
            .with_fail_eagerly()
            .connect(&self.addresses);
        match timeout(self.settings.connect_timeout, connecting).await {
            Ok(Ok(client)) => Ok(client),
            Ok(Err(error)) => match Failure::from(error) {
                // Nothing was asked yet.
                Failure::Unanswered(words) => Err(Failure::Unreachable(words)),
                failure => Err(failure),
            },
            Err(_) => Err(Failure::Unreachable("connecting took too long".to_owned())),
        }
    }
}

/// Checks that an address is `host:port`.
pub fn check_address(address: &str) -> Result<(), LockProblem> {
    let bad = |reason: &str| {
        Err(LockProblem::BadAddress {
            address: without_password(address),
            reason: reason.to_owned(),
        })
    };
    let Some((host, port)) = address.rsplit_once(':') else {
        return bad("it names no port");
    };
    let is_host = |host: &str| {
        let allowed = |letter: char| letter.is_ascii_alphanumeric() || "-._[]:".contains(letter);
        !host.is_empty() && host.chars().all(allowed)
    };
    // The client library would take a slash for a folder, and a comma for another server.
    if !is_host(host) {
        return bad("it names no host");
    }
    match port.parse::<u16>() {
        Ok(0) | Err(_) => bad("its port is none"),
        Ok(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_its_port() {
        for address in ["127.0.0.1:2181", "zookeeper-1:2181", "[::1]:2181"] {
            assert_eq!(check_address(address), Ok(()), "{address}");
        }
        for address in [
            "",
            "host",
            "h:x",
            "h:0",
            ":1",
            "tcp://h:1",
            "h:1/root",
            "a:1,b:2",
            "not an address:1",
        ] {
            let refused = check_address(address).unwrap_err();
            assert!(
                matches!(refused, LockProblem::BadAddress { .. }),
                "{address}"
            );
        }
    }
}
