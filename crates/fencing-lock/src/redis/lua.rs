use redis::{Cmd, ErrorKind, RedisError, Script, ServerErrorKind, cmd};
#[cfg(feature = "servers")]
use redis::{FromRedisValue, aio::MultiplexedConnection};
use std::borrow::Cow;
use std::sync::Arc;

/// A script that the server runs as one step. Every release has one of its own, so a clone
/// costs nothing.
#[derive(Clone)]
pub struct Lua {
    code: Arc<str>,
    hash: Arc<str>,
}

impl Lua {
    pub fn new(code: impl Into<Cow<'static, str>>) -> Lua {
        let code = code.into();
        Lua {
            hash: Script::new(&code).get_hash().into(),
            code: code.into(),
        }
    }

    /// Runs the script by its hash, and sends the whole script if the server does not
    /// know it.
    #[cfg(feature = "servers")]
    pub async fn run<T: FromRedisValue>(
        &self,
        connection: &mut MultiplexedConnection,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, RedisError> {
        let by_hash = self.by_hash(keys, arguments);
        let answer = by_hash.query_async(connection).await;
        match self.if_unknown(&answer, keys, arguments) {
            Some(whole) => whole.query_async(connection).await,
            None => answer,
        }
    }

    pub(super) fn by_hash(&self, keys: &[String], arguments: &[&str]) -> Cmd {
        call("EVALSHA", &self.hash, keys, arguments)
    }

    /// Returns the request to send next if the server does not know the hash: the whole
    /// script. To load it and call it again would be two steps, and somebody's SCRIPT
    /// FLUSH can come between them. A script that was not found did nothing, so nothing
    /// is done twice.
    pub(super) fn if_unknown<T>(
        &self,
        by_hash: &Result<T, RedisError>,
        keys: &[String],
        arguments: &[&str],
    ) -> Option<Cmd> {
        let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
        let error = by_hash.as_ref().err()?;
        (error.kind() == unknown).then(|| self.whole(keys, arguments))
    }

    /// Returns the request that every server understands.
    pub(super) fn whole(&self, keys: &[String], arguments: &[&str]) -> Cmd {
        call("EVAL", &self.code, keys, arguments)
    }
}

fn call(name: &str, script: &str, keys: &[String], arguments: &[&str]) -> Cmd {
    let mut command = cmd(name);
    command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}
