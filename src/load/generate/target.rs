use super::commands::command;
use super::wire::Wire;
use super::*;
use fencing_lock::LockProblem;
use fencing_lock::servers::bounded_redis::RedisConnection;
use fencing_lock::servers::{bounded_redis as bounded, redis_client, redis_connect_problem};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ErrorKind, FromRedisValue, RedisError,
    RedisResult,
};
use tokio::net::TcpStream;
use tokio::time::timeout;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A server that is busy with a great many keys may be slow, but not forever.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// One Redis, given as `host:port` or a URL.
pub(in crate::load) struct Target {
    client: Client,
    host: String,
    port: u16,
    pub(in crate::load) shown: String,
}

impl Target {
    pub(in crate::load) fn parse(address: &str) -> LoadResult<Target> {
        let usage = |problem: LockProblem| LoadError::Usage(problem.to_string());
        let client = redis_client(address).map_err(usage)?;
        let shown = client.get_connection_info().addr().to_string();
        match client.get_connection_info().addr().clone() {
            ConnectionAddr::Tcp(host, port) => Ok(Target {
                client,
                host,
                port,
                shown,
            }),
            _ => Err(LoadError::Usage(format!(
                "{shown} is no plain TCP address: write host:port, or redis://:PASSWORD@host:port"
            ))),
        }
    }

    /// Opens a connection for questions and waits for one answer, so the caller has a Redis
    /// that lets us in.
    pub(in crate::load) async fn ask(&self) -> LoadResult<RedisConnection> {
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_TIMEOUT));
        let connecting = bounded::connect(&self.client, config, CONNECT_TIMEOUT);
        let mut connection = connecting.await.map_err(|error| self.failure(error))?;
        let ping = cmd("PING").query_async::<()>(&mut *connection).await;
        ping.map_err(|error| self.failure(error))?;
        Ok(connection)
    }

    pub(in crate::load) fn failure(&self, error: RedisError) -> LoadError {
        let shown = &self.shown;
        if error.code() == Some("NOAUTH") {
            return LoadError::Usage(format!(
                "{shown} asks for a password: write redis://:PASSWORD@{shown}"
            ));
        }
        match redis_connect_problem(error) {
            LockProblem::Refused(reason) => {
                LoadError::Usage(format!("{shown} does not let us in: {reason}"))
            }
            LockProblem::BadAnswer(reason) => LoadError::Unreachable {
                what: shown.clone(),
                reason: format!("somebody is there, but no Redis ({reason})"),
            },
            problem => LoadError::Unreachable {
                what: shown.clone(),
                reason: problem.to_string(),
            },
        }
    }

    /// Opens a connection for raw commands, logged in and with the right database.
    pub(super) async fn wire(&self) -> Result<Wire, Stop> {
        let lost = |error: std::io::Error| Stop::Lost(error.to_string());
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let connected = timeout(CONNECT_TIMEOUT, connecting).await;
        let stream = connected.map_err(|_| Stop::Lost("connecting took too long".to_owned()))?;
        let stream = stream.map_err(lost)?;
        stream.set_nodelay(true).map_err(lost)?;
        let mut wire = Wire::new(stream, ANSWER_TIMEOUT);
        let (greeting, words) = self.greeting();
        let replies = wire.send(&greeting, words).await?;
        match replies.error {
            Some(error) => Err(Stop::Refused(error)),
            None => Ok(wire),
        }
    }

    fn greeting(&self) -> (Vec<u8>, u64) {
        let settings = self.client.get_connection_info().redis_settings();
        let (mut out, mut words) = (Vec::new(), 0);
        if let Some(password) = settings.password() {
            let user = settings.username().unwrap_or("default");
            command(&mut out, &[b"AUTH", user.as_bytes(), password.as_bytes()]);
            words += 1;
        }
        if settings.db() != 0 {
            command(&mut out, &[b"SELECT", settings.db().to_string().as_bytes()]);
            words += 1;
        }
        (out, words)
    }
}

/// Returns a field of INFO. A server without it cannot be measured: 0 would be a false figure.
pub(in crate::load) fn said<T: FromRedisValue>(info: &InfoDict, name: &str) -> RedisResult<T> {
    let missing = || {
        let kind = ErrorKind::UnexpectedReturnType;
        RedisError::from((kind, "its INFO does not say", name.to_owned()))
    };
    info.get(name).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_brings_password_and_database() {
        let target = Target::parse("redis://:secret@127.0.0.1:7000/3").unwrap();
        assert_eq!(target.shown, "127.0.0.1:7000");
        let (greeting, words) = target.greeting();
        let mut expected = Vec::new();
        command(&mut expected, &[b"AUTH", b"default", b"secret"]);
        command(&mut expected, &[b"SELECT", b"3"]);
        assert_eq!((greeting, words), (expected, 2));
        let plain = Target::parse("127.0.0.1:7000").unwrap();
        assert_eq!(plain.greeting(), (Vec::new(), 0));
    }

    #[test]
    fn what_is_no_address_of_a_plain_redis_is_refused() {
        for bad in ["", "not an address", "unix:///tmp/redis.sock", "redis://"] {
            let refused = Target::parse(bad);
            assert!(matches!(refused, Err(LoadError::Usage(_))), "{bad:?}");
        }
    }
}
