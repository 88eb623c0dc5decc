use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, FromRedisValue, RedisError, Script, ServerErrorKind, cmd};
use std::borrow::Cow;

/// A script that the server runs as one step.
pub(in crate::dlock) struct Lua {
    code: Cow<'static, str>,
    hash: String,
}

impl Lua {
    pub(in crate::dlock) fn new(code: impl Into<Cow<'static, str>>) -> Lua {
        let code = code.into();
        Lua {
            hash: Script::new(&code).get_hash().to_owned(),
            code,
        }
    }

    /// Runs it by its hash, and as a whole where the server does not know it.
    /// To load it and call it again would be two steps, and somebody's SCRIPT
    /// FLUSH can come between them; a script that was not found did nothing,
    /// so nothing is done twice.
    pub(in crate::dlock) async fn run<T: FromRedisValue>(
        &self,
        connection: &mut MultiplexedConnection,
        keys: &[String],
        arguments: &[&str],
    ) -> Result<T, RedisError> {
        let command = |name: &str, script: &str| {
            let mut command = cmd(name);
            command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
            command
        };
        let unknown = ErrorKind::Server(ServerErrorKind::NoScript);
        let by_hash = command("EVALSHA", &self.hash);
        match by_hash.query_async(connection).await {
            Err(error) if error.kind() == unknown => {
                let whole = command("EVAL", &self.code);
                // In a box, because it is rare: no other request carries its weight.
                Box::pin(whole.query_async(connection)).await
            }
            other => other,
        }
    }
}
