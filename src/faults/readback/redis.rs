use super::super::Proof;
use super::super::field::Reached;
use super::{ANSWER_DEADLINE, failed};
use fencing_lock::servers::bounded_redis::{self as bounded, RedisConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, InfoDict, RedisError, Value, cmd};

/// A key that no lock uses.
const MEMORY: &str = "fencepost:memory";

/// Returns its realtime clock, in nanoseconds, between two readings of ours. Connecting takes
/// longer than asking, so it is done before the first reading.
pub async fn time(server: &Reached, ours: impl Fn() -> i64) -> Proof<(i64, i64, i64)> {
    let asked = async {
        let mut connection = connect(server).await?;
        let before = ours();
        let time: (i64, i64) = cmd("TIME").query_async(&mut *connection).await?;
        Ok((before, time, ours()))
    };
    let (before, (seconds, micros), after) = asked
        .await
        .map_err(|error: RedisError| failed(server.address, error))?;
    Ok((before, (seconds * 1_000_000 + micros) * 1_000, after))
}

pub async fn remember(server: &Reached) -> Proof {
    let set = cmd("SET").arg(MEMORY).arg("kept").clone();
    ask(server, &set).await
}

pub async fn remembers(server: &Reached) -> Proof<bool> {
    ask(server, cmd("EXISTS").arg(MEMORY)).await
}

pub async fn is_primary(server: &Reached) -> Proof<bool> {
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

pub async fn promote(server: &Reached) -> Proof {
    ask(server, cmd("REPLICAOF").arg(&["NO", "ONE"])).await
}

/// Returns the run id of a server, which changes with every start.
pub async fn run_id(server: &Reached) -> Proof<String> {
    let info: InfoDict = ask(server, cmd("INFO").arg("server")).await?;
    let id = info.get("run_id");
    id.ok_or_else(|| failed(server.address, "INFO has no run_id"))
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

async fn connect(server: &Reached) -> redis::RedisResult<RedisConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_DEADLINE));
    let client = Client::open(format!("redis://{}/", server.address))?;
    bounded::connect_in(&server.env, &client, config, ANSWER_DEADLINE).await
}
