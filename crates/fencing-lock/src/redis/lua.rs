use super::request::Request;
#[cfg(feature = "servers")]
use redis::{Cmd, FromRedisValue, aio::MultiplexedConnection, cmd};
use redis::{ErrorKind, RedisError, Script, ServerErrorKind};
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
    /// know it. To load it and call it again would be two steps, and somebody's SCRIPT
    /// FLUSH can come between them. A script that was not found did nothing, so nothing
    /// is done twice.
    #[cfg(feature = "servers")]
    pub async fn run<T: FromRedisValue>(
        &self,
        connection: &mut MultiplexedConnection,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, RedisError> {
        let by_hash = call("EVALSHA", &self.hash, keys, arguments);
        match by_hash.query_async(connection).await {
            Err(error) if is_unknown(&error) => {
                let whole = call("EVAL", &self.code, keys, arguments);
                whole.query_async(connection).await
            }
            other => other,
        }
    }

    /// Returns the request for a script that answers with the number of its request.
    pub(super) fn by_hash(&self, keys: &[String], arguments: &[&str], number: u64) -> Request {
        numbered(["EVALSHA", &self.hash], keys, arguments, number)
    }

    /// Returns the same request in the form that every server understands.
    pub(super) fn whole(&self, keys: &[String], arguments: &[&str], number: u64) -> Request {
        numbered(["EVAL", &self.code], keys, arguments, number)
    }
}

fn numbered(script: [&str; 2], keys: &[String], arguments: &[&str], number: u64) -> Request {
    let mut request = Request::new(4 + keys.len() + arguments.len());
    request.words(&script);
    request.number(keys.len() as u64);
    request.words(keys);
    request.words(arguments);
    request.number(number);
    request
}

#[cfg(feature = "servers")]
fn call(name: &str, script: &str, keys: &[String], arguments: &[&str]) -> Cmd {
    let mut command = cmd(name);
    command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}

/// Returns whether the server does not know the script by its hash.
pub(super) fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
