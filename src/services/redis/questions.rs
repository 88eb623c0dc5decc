use crate::clock::wall_clock_ns;
use crate::services::questions::*;
use ::redis::{
    AsyncConnectionConfig, Client, Cmd, FromRedisValue, InfoDict, RedisError, RedisResult, Value,
    cmd,
};
use fencing_lock::servers::bounded_redis::{self as bounded, RedisConnection};

pub struct RedisServer;

/// A key that no lock uses.
const MEMORY: &str = "fencepost:memory";

#[async_trait]
impl Questions for RedisServer {
    async fn time(&self, server: &Reached) -> Proof<Option<TimeBetween>> {
        let asked = async {
            let mut connection = connect(server).await?;
            let before = wall_clock_ns();
            let (seconds, micros): (i64, i64) = cmd("TIME").query_async(&mut *connection).await?;
            let theirs = (seconds * 1_000_000 + micros) * 1_000;
            Ok(Some((before, theirs, wall_clock_ns())))
        };
        let read: Result<_, RedisError> = asked.await;
        read.map_err(|error| failed(server.address, error))
    }

    async fn remember(&self, server: &Reached) -> Proof<bool> {
        if !self.is_primary(server).await? {
            return Ok(false);
        }
        let set = cmd("SET").arg(MEMORY).arg("kept").clone();
        ask::<()>(server, &set).await.map(|()| true)
    }

    async fn remembers(&self, server: &Reached) -> Proof<Option<bool>> {
        ask(server, cmd("EXISTS").arg(MEMORY)).await.map(Some)
    }

    async fn is_primary(&self, server: &Reached) -> Proof<bool> {
        let role: Vec<Value> = ask(server, &cmd("ROLE")).await?;
        let word = role.first().cloned().map(String::from_redis_value);
        match word {
            Some(Ok(word)) => Ok(word == "master"),
            _ => Err(failed(
                server.address,
                format!("ROLE was answered with {role:?}"),
            )),
        }
    }

    async fn promote(&self, server: &Reached) -> Proof {
        ask(server, cmd("REPLICAOF").arg(&["NO", "ONE"])).await
    }

    /// The run id of a server changes with every start.
    async fn sign(&self, server: &Reached) -> Proof<Sign> {
        let info: InfoDict = ask(server, cmd("INFO").arg("server")).await?;
        let id = info.get("run_id");
        Ok(Sign {
            question: "INFO server\r\n".to_owned(),
            answer: id.ok_or_else(|| failed(server.address, "INFO has no run_id"))?,
            refusal: None,
        })
    }
}

async fn ask<T: FromRedisValue>(server: &Reached, command: &Cmd) -> Proof<T> {
    let asked = async {
        let mut connection = connect(server).await?;
        command.query_async(&mut *connection).await
    };
    asked
        .await
        .map_err(|error: RedisError| failed(server.address, error))
}

async fn connect(server: &Reached) -> RedisResult<RedisConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_DEADLINE));
    let client = Client::open(format!("redis://{}/", server.address))?;
    bounded::connect_in(&server.env, &client, config, ANSWER_DEADLINE).await
}
