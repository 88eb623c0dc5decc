use redis::aio::MultiplexedConnection;
use redis::{RedisResult, cmd};
use std::collections::BTreeMap;

const NAME: &str = "active-expire-effort";

/// How hard a Redis searches for expired keys by itself; changed until it is put back.
pub(super) struct Effort {
    before: Option<String>,
}

impl Effort {
    pub(super) async fn set(
        wanted: Option<u32>,
        asking: &mut MultiplexedConnection,
    ) -> RedisResult<Effort> {
        let Some(wanted) = wanted else {
            return Ok(Effort { before: None });
        };
        let before = read(asking).await?;
        write(&wanted.to_string(), asking).await?;
        Ok(Effort { before })
    }

    pub(super) async fn put_back(&self, asking: &mut MultiplexedConnection) -> RedisResult<()> {
        match &self.before {
            Some(before) => write(before, asking).await,
            None => Ok(()),
        }
    }
}

/// Returns the server's current value; `None` if the server does not report it.
pub(super) async fn read(asking: &mut MultiplexedConnection) -> RedisResult<Option<String>> {
    let mut asked = cmd("CONFIG");
    asked.arg("GET").arg(NAME);
    let mut answer: BTreeMap<String, String> = asked.query_async(asking).await?;
    Ok(answer.remove(NAME))
}

async fn write(effort: &str, asking: &mut MultiplexedConnection) -> RedisResult<()> {
    let mut set = cmd("CONFIG");
    set.arg("SET").arg(NAME).arg(effort);
    set.query_async(asking).await
}
