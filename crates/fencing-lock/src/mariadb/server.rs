use crate::{Env, LockProblem, without_password};
use mysql_async::{Opts, OptsBuilder};

/// One server, and the user and the database there.
pub(super) struct Server {
    pub(super) opts: Opts,
    /// The surroundings that it is reached from.
    pub(super) env: Env,
}

/// The user and the database of an address that names none.
const DEFAULT: &str = "fencing_lock";
/// Everything that a lock asks for is answered in much less.
const MAX_MESSAGE_BYTES: usize = 1024 * 1024;
/// Tokens of different keys do not wait for each other then.
const SETUP: &str = "SET SESSION tx_isolation = 'READ-COMMITTED', autocommit = 1";

impl Server {
    /// Reads `host:port`, or a URL: `mariadb://user:password@host:port/database`.
    pub(super) fn at(address: &str, env: Env) -> Result<Server, LockProblem> {
        let bad = |reason: String| LockProblem::BadAddress {
            address: without_password(address),
            reason,
        };
        let rest = match address.split_once("://") {
            Some(("mariadb" | "mysql", rest)) => rest,
            Some(_) => return Err(bad("it is no URL of a MariaDB".to_owned())),
            None => address,
        };
        let opts = Opts::from_url(&format!("mysql://{rest}"));
        let opts = opts.map_err(|error| bad(error.to_string()))?;
        if opts.ssl_opts().is_some() {
            return Err(bad("TLS is not supported".to_owned()));
        }
        let host = opts.ip_or_hostname();
        if host.is_empty() || host.contains(char::is_whitespace) || host.contains("%20") {
            return Err(bad("it names no host".to_owned()));
        }
        let user = opts.user().unwrap_or(DEFAULT).to_owned();
        let database = opts.db_name().unwrap_or(DEFAULT).to_owned();
        let opts = OptsBuilder::from_opts(opts)
            .user(Some(user))
            .db_name(Some(database))
            // A socket would lead past a proxy that the address names.
            .prefer_socket(false)
            .stmt_cache_size(0)
            .max_allowed_packet(Some(MAX_MESSAGE_BYTES))
            .wait_timeout(Some(0))
            .setup(vec![SETUP]);
        let opts = opts.into();
        Ok(Server { opts, env })
    }

    /// Returns its name for errors, which holds no password.
    pub(super) fn node(&self) -> String {
        let (host, port) = (self.opts.ip_or_hostname(), self.opts.tcp_port());
        match host.contains(':') && !host.starts_with('[') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        }
    }

    pub(super) fn database(&self) -> &str {
        self.opts.db_name().unwrap_or(DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_with_its_port_or_a_url() {
        let read = |address: &str| {
            let server = Server::at(address, Env::default()).unwrap();
            let user = server.opts.user().unwrap();
            format!("{} {user} {}", server.node(), server.database())
        };
        assert_eq!(read("127.0.0.1:6"), "127.0.0.1:6 fencing_lock fencing_lock");
        assert_eq!(read("db"), "db:3306 fencing_lock fencing_lock");
        assert_eq!(read("[::1]:6"), "[::1]:6 fencing_lock fencing_lock");
        assert_eq!(read("mariadb://me:s3cret@db:7/locks"), "db:7 me locks");
        assert_eq!(read("mysql://me@db"), "db:3306 me fencing_lock");
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_its_password() {
        for address in [
            "",
            "not an address",
            "h:x",
            "h:1:2",
            "redis://h:1",
            "mariadb://me:s3cret@h:x",
            "mariadb://me:s3cret@a:1,b:2/d",
            "mariadb://me:s3cret@h/d?require_ssl=true",
        ] {
            let refused = Server::at(address, Env::default()).err().expect(address);
            assert!(matches!(refused, LockProblem::BadAddress { .. }));
            assert!(!refused.to_string().contains("s3cret"), "{refused}");
        }
    }
}
