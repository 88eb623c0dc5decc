use crate::services::guest::*;
use ::redis::{AsyncConnectionConfig, FromRedisValue, InfoDict, cmd};
use fencing_lock::servers::bounded_redis::{self as bounded, RedisConnection};
use fencing_lock::servers::{redis_client, redis_connect_problem, redis_problem};
use std::collections::BTreeMap;

pub const GUEST: Guest = Guest {
    port: 6379,
    has_login: true,
    has_database: false,
    writes: |prefix| {
        format!("keys whose names have {prefix} in them: locks, and counters of tokens")
    },
    setting: Some(GuestSetting {
        name: NOTIFY,
        is_enough: reports,
        enough: |value| {
            let missing = NEEDED.chars().filter(|flag| !has(value, *flag));
            missing.fold(value.to_owned(), |value, flag| format!("{value}{flag}"))
        },
        is_same: |one, other| {
            "KEmn"
                .chars()
                .chain(ALL.chars())
                .all(|flag| has(one, flag) == has(other, flag))
        },
        read: |url| Box::pin(async { notifications(&mut connect(url).await?).await }),
        write: |url, value| {
            Box::pin(async move {
                let mut connection = connect(url).await?;
                let set = cmd("CONFIG").arg("SET").arg(NOTIFY).arg(value).clone();
                ask(&mut connection, &set).await
            })
        },
    }),
    sees_others: true,
    environment: |_| Vec::new(),
    url: |door| format!("redis://{}{}", userinfo(door), door.server),
    look: |url| Box::pin(look(url)),
    begin: |_, _| Box::pin(async { Ok(()) }),
    remove: |url, prefix| Box::pin(remove(url, prefix)),
};

const NOTIFY: &str = "notify-keyspace-events";
/// K: on the key's channel. g: del and expire. $: set. h: hashes. x: expired. e: evicted.
const NEEDED: &str = "Kg$hxe";
/// All flags that `A` stands for.
const ALL: &str = "g$lshzxetd";
const KEYS_A_STEP: usize = 1000;

fn has(value: &str, flag: char) -> bool {
    value.contains(flag) || (value.contains('A') && ALL.contains(flag))
}

fn reports(value: &str) -> bool {
    NEEDED.chars().all(|flag| has(value, flag))
}

/// Fails unless the server reports what happens to keys, as an observer needs it.
pub async fn reports_changes(connection: &mut RedisConnection) -> Result<(), LockProblem> {
    let value = notifications(connection).await?;
    match reports(&value) {
        true => Ok(()),
        false => Err(LockProblem::Refused(format!(
            "it does not report what happens to its keys ({NOTIFY} is `{value}`)"
        ))),
    }
}

async fn notifications(connection: &mut RedisConnection) -> Result<String, LockProblem> {
    let get = cmd("CONFIG").arg("GET").arg(NOTIFY).clone();
    let mut values: BTreeMap<String, String> = ask(connection, &get).await?;
    Ok(values.remove(NOTIFY).unwrap_or_default())
}

async fn look(url: &str) -> Result<Sighting, LockProblem> {
    let mut connection = connect(url).await?;
    let info: InfoDict = ask(&mut connection, &cmd("INFO")).await?;
    let refused = |why: String| Err(LockProblem::Refused(why));
    let mode: String = info.get("redis_mode").unwrap_or_default();
    if mode == "sentinel" || mode == "cluster" {
        return refused(format!(
            "it is a Redis {mode}; name one Redis that stands alone or is a primary"
        ));
    }
    if info.get::<String>("role").as_deref() == Some("slave") {
        let host: String = info.get("master_host").unwrap_or_default();
        let port: String = info.get("master_port").unwrap_or_default();
        return refused(format!(
            "it is a replica, where nothing can be written; name its primary {host}:{port}"
        ));
    }
    let Some(identity) = info.get("run_id") else {
        return refused("it does not say who it is (INFO has no run_id)".to_owned());
    };
    let keys: u64 = ask(&mut connection, &cmd("DBSIZE")).await?;
    let clients: u64 = info.get("connected_clients").unwrap_or(1);
    let replicas: u64 = info.get("connected_slaves").unwrap_or(0);
    let signs = [
        counted(keys, "key", "keys"),
        // One of them is this process.
        counted(clients.saturating_sub(1), "other client", "other clients"),
        counted(replicas, "replica", "replicas"),
    ];
    Ok(Sighting {
        identity,
        version: info.get("redis_version").unwrap_or_default(),
        signs: signs.into_iter().flatten().collect(),
    })
}

/// Removes every key whose name has the prefix in it, whatever a library puts before it.
async fn remove(url: &str, prefix: &str) -> Result<(), LockProblem> {
    let mut connection = connect(url).await?;
    let mut cursor = "0".to_owned();
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(format!("*{prefix}*"));
        scan.arg("COUNT").arg(KEYS_A_STEP);
        let (next, keys): (String, Vec<Vec<u8>>) = ask(&mut connection, &scan).await?;
        if !keys.is_empty() {
            let unlink = cmd("UNLINK").arg(keys).clone();
            let _removed: u64 = ask(&mut connection, &unlink).await?;
        }
        if next == "0" {
            return Ok(());
        }
        cursor = next;
    }
}

async fn connect(url: &str) -> Result<RedisConnection, LockProblem> {
    let config = AsyncConnectionConfig::new().set_response_timeout(Some(ANSWER_WITHIN));
    let connected = bounded::connect(&redis_client(url)?, config, ANSWER_WITHIN).await;
    connected.map_err(redis_connect_problem)
}

async fn ask<T: FromRedisValue>(
    connection: &mut RedisConnection,
    command: &::redis::Cmd,
) -> Result<T, LockProblem> {
    let answer = command.query_async(&mut **connection).await;
    answer.map_err(redis_problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_enough_if_everything_that_is_needed_is_reported() {
        let setting = GUEST.setting.as_ref().unwrap();
        for (value, is_enough, enough) in [
            ("", false, "Kg$hxe"),
            ("KEA", true, "KEA"),
            ("AE", false, "AEK"),
            ("Kg$hxe", true, "Kg$hxe"),
            ("Ex", false, "ExKg$he"),
        ] {
            assert_eq!((setting.is_enough)(value), is_enough, "{value}");
            assert_eq!((setting.enough)(value), enough);
            assert!((setting.is_enough)(enough), "{enough}");
            let backwards: String = enough.chars().rev().collect();
            assert!((setting.is_same)(enough, &backwards));
            assert_eq!((setting.is_same)(value, enough), is_enough, "{value}");
        }
    }
}
