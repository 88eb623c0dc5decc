use super::ANSWER_DEADLINE;
use crate::bounded::redis::{self as bounded, RedisConnection};
use redis::{AsyncConnectionConfig, Client, Cmd, FromRedisValue, InfoDict, Value, cmd};
use std::net::SocketAddr;

/// Outside of everything that locks use.
const MEMORY: &str = "fencepost:memory";

/// Its realtime clock, in nanoseconds, between two looks at ours. Connecting
/// takes longer than asking, and is over before the first look.
pub async fn time(address: SocketAddr, ours: impl Fn() -> i64) -> Result<(i64, i64, i64), String> {
    let asked = async {
        let mut connection = connect(address).await?;
        let before = ours();
        let time: (i64, i64) = cmd("TIME").query_async(&mut *connection).await?;
        Ok((before, time, ours()))
    };
    let (before, (seconds, micros), after) = asked.await.map_err(no_answer(address))?;
    Ok((before, (seconds * 1_000_000 + micros) * 1_000, after))
}

/// Gives it something to remember.
pub async fn remember(address: SocketAddr) -> Result<(), String> {
    let set = cmd("SET").arg(MEMORY).arg("kept").clone();
    ask(address, &set).await
}

pub async fn remembers(address: SocketAddr) -> Result<bool, String> {
    ask(address, cmd("EXISTS").arg(MEMORY)).await
}

pub async fn is_primary(address: SocketAddr) -> Result<bool, String> {
    let role: Vec<Value> = ask(address, &cmd("ROLE")).await?;
    let word = role.first().cloned().map(String::from_redis_value);
    match word {
        Some(Ok(word)) => Ok(word == "master"),
        _ => Err(format!("ROLE was answered with {role:?}")),
    }
}

pub async fn promote(address: SocketAddr) -> Result<(), String> {
    ask(address, cmd("REPLICAOF").arg(&["NO", "ONE"])).await
}

/// Another one with every start.
pub async fn run_id(address: SocketAddr) -> Result<String, String> {
    let info: InfoDict = ask(address, cmd("INFO").arg("server")).await?;
    let id = info.get("run_id");
    id.ok_or_else(|| "INFO has no run_id".to_owned())
}

async fn ask<T: FromRedisValue>(address: SocketAddr, command: &Cmd) -> Result<T, String> {
    let asked = async {
        let mut connection = connect(address).await?;
        command.query_async(&mut *connection).await
    };
    asked.await.map_err(no_answer(address))
}

fn no_answer(address: SocketAddr) -> impl Fn(redis::RedisError) -> String {
    move |error| format!("{address} gave no usable answer: {error}")
}

async fn connect(address: SocketAddr) -> redis::RedisResult<RedisConnection> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_DEADLINE));
    let client = Client::open(format!("redis://{address}/"))?;
    bounded::connect(&client, config, ANSWER_DEADLINE).await
}
