use crate::{Env, LockProblem, without_password};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

/// One server, and the user and the database there.
pub(super) struct Server {
    pub(super) config: Config,
    pub(super) host: String,
    pub(super) port: u16,
    /// The surroundings that it is reached from.
    pub(super) env: Env,
}

/// The user and the database of an address that names none.
const DEFAULT: &str = "postgres";
const DEFAULT_PORT: u16 = 5432;

impl Server {
    /// Reads `host:port`, or a URL: `postgres://user:password@host:port/database`.
    pub(super) fn at(address: &str, env: Env) -> Result<Server, LockProblem> {
        let bad = |reason: String| LockProblem::BadAddress {
            address: without_password(address),
            reason,
        };
        let url = if address.contains("://") {
            address.to_owned()
        } else {
            format!("postgres://{address}")
        };
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let source = std::error::Error::source(&error);
            bad(source.map_or(error.to_string(), ToString::to_string))
        })?;
        let [Host::Tcp(host)] = config.get_hosts() else {
            return Err(bad("it does not name one host".to_owned()));
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(bad("it names no host".to_owned()));
        }
        let (host, port) = match config.get_ports() {
            [] => (host.clone(), DEFAULT_PORT),
            [port] => (host.clone(), *port),
            _ => return Err(bad("it names several ports".to_owned())),
        };
        if config.get_user().is_none() {
            config.user(DEFAULT);
        }
        if config.get_dbname().is_none() {
            config.dbname(DEFAULT);
        }
        if config.get_application_name().is_none() {
            config.application_name("fencing-lock");
        }
        // Nothing here speaks TLS. An address that demands it is refused when connecting.
        if config.get_ssl_mode() == SslMode::Prefer {
            config.ssl_mode(SslMode::Disable);
        }
        Ok(Server {
            config,
            host,
            port,
            env,
        })
    }

    /// Returns its name for errors, which holds no password.
    pub(super) fn node(&self) -> String {
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_its_port_or_a_url() {
        let read = |address: &str| {
            let server = Server::at(address, Env::default()).unwrap();
            let Server { config, .. } = &server;
            let who = (config.get_user().unwrap(), config.get_dbname().unwrap());
            format!("{} {} {}", server.node(), who.0, who.1)
        };
        assert_eq!(read("127.0.0.1:6"), "127.0.0.1:6 postgres postgres");
        assert_eq!(read("db"), "db:5432 postgres postgres");
        assert_eq!(read("[::1]:6"), "[::1]:6 postgres postgres");
        assert_eq!(read("postgres://me:s3cret@db:7/locks"), "db:7 me locks");
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_its_password() {
        for address in [
            "",
            "not an address",
            "h:x",
            "h:1:2",
            "redis://h:1",
            "postgres://me:s3cret@h:x",
            "postgres://me:s3cret@a:1,b:2/d",
        ] {
            let refused = Server::at(address, Env::default()).err().expect(address);
            assert!(matches!(refused, LockProblem::BadAddress { .. }));
            assert!(!refused.to_string().contains("s3cret"), "{refused}");
        }
    }
}
