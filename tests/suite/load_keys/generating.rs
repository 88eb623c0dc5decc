use super::{configure, database_size, leave_no_memory};
use crate::redis_lock::kit::{LONG, locks_at};
use crate::support::{Ended, Running, command, connection_to, docker_shared, own_redis, start};
use fencepost::load::generated_names;
use fencing_lock::RedisSettings;
use nix::sys::signal::Signal;
use redis::{AsyncCommands, cmd};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;

const FEW: u64 = 20_000;
/// In small batches, so that there is time to end it in the middle.
const MANY: u64 = 300_000;
const BATCH: u64 = 5;
const CONNECTIONS: u64 = 2;

#[tokio::test]
async fn two_fills_from_one_seed_are_the_same_locks() {
    let _turn = docker_shared();
    let server = own_redis();
    let few = FEW.to_string();
    let fill = |more: &[&str]| {
        let given = ["--keys", &few, "--ttl", "10m", "--seed", "7"];
        generate(&server.address, &[&given, more].concat())
            .wait()
            .expect_code(0)
    };
    fill(&[]).expect_said(&["made     20,000", "refused  0"]);
    let first = everything(&server.address).await;
    assert_eq!(first.len() as u64, FEW, "locks and nothing else");
    let names = generated_names(7);
    for index in [0, 1, FEW - 1] {
        let key = format!("lock:{{{}}}", names.name(index));
        assert_eq!(first.get(&key), Some(&names.owner(index).to_string()));
    }
    let mut redis = connection_to(&server.address).await;
    let left_ms: i64 = redis.pttl("lock:{gen-7-0}").await.unwrap();
    assert!((1..=600_000).contains(&left_ms), "{left_ms}");
    // They are locks: who wants one finds it held.
    let (locks, _) = locks_at(&server.address, RedisSettings::default(), LONG);
    assert!(locks.try_acquire(&names.name(5)).await.unwrap().is_none());

    fill(&[]).expect_said(&["made     0", "refused  20,000"]);
    cmd("FLUSHALL").query_async::<()>(&mut redis).await.unwrap();
    fill(&["--pipeline", "33", "--connections", "5"]).expect_said(&["made     20,000"]);
    assert!(everything(&server.address).await == first, "other locks");
}

#[tokio::test]
async fn a_killed_fill_goes_on_where_it_was() {
    let _turn = docker_shared();
    let server = own_redis();
    let filling = generate_many(&server.address);
    until_some(&server.address).await;
    filling.signal(Signal::SIGKILL);
    assert_eq!(filling.wait().code, None);
    let before = database_size(&server.address).await;
    assert!(before < MANY, "it was over already");

    let ended = generate_many(&server.address).wait().expect_code(0);
    assert_eq!(
        database_size(&server.address).await,
        MANY,
        "the marker is gone, too"
    );
    let resumed = number(&ended, "resumed");
    assert!(resumed > 0 && resumed <= before, "{resumed} of {before}");
    let (made, refused) = (number(&ended, "made"), number(&ended, "refused"));
    assert_eq!(resumed + made + refused, MANY, "{ended}");
    // Sent and answered, and not marked yet when it was killed.
    assert!(refused <= 2 * BATCH * CONNECTIONS, "{ended}");
    let memory_mib = number(&ended, "memory");
    assert!((1..100).contains(&memory_mib), "{ended}");
}

#[tokio::test]
async fn an_interrupted_fill_goes_on_and_nothing_is_made_twice() {
    let _turn = docker_shared();
    let server = own_redis();
    let filling = generate_many(&server.address);
    until_some(&server.address).await;
    filling.signal(Signal::SIGINT);
    let interrupted = filling.wait().expect_code(130);
    interrupted.expect_said(&["interrupted", "(partial)", "the same command goes on"]);
    let ended = generate_many(&server.address).wait().expect_code(0);
    assert!(number(&ended, "resumed") > 0, "{ended}");
    assert_eq!(number(&ended, "refused"), 0, "{ended}");
    assert_eq!(database_size(&server.address).await, MANY);
}

#[tokio::test]
async fn a_restart_begins_with_the_first_key() {
    let _turn = docker_shared();
    let server = own_redis();
    let filling = generate_many(&server.address);
    until_some(&server.address).await;
    filling.signal(Signal::SIGINT);
    filling.wait().expect_code(130);
    let before = database_size(&server.address).await - 1;
    let ended = generate(
        &server.address,
        &["--keys", "300k", "--ttl", "10m", "--restart"],
    );
    let ended = ended.wait().expect_code(0);
    assert!(!ended.stdout.contains("resumed"), "{ended}");
    assert_eq!(number(&ended, "refused"), before, "{ended}");
}

#[tokio::test]
async fn a_server_without_memory_is_told_and_the_fill_goes_on_later() {
    let _turn = docker_shared();
    let server = own_redis();
    leave_no_memory(&server.address, 2 << 20).await;
    let keys = ["--keys", "50k", "--ttl", "10m"];
    let full = generate(&server.address, &keys).wait().expect_code(69);
    let full = full.expect_said(&["out of memory", "OOM", "(partial)", "maxmemory"]);
    full.expect_short_error(2);
    let before = database_size(&server.address).await;
    assert!(before > 0 && before < 50_000, "{before}");
    configure(&server.address, "maxmemory", "0").await;
    let ended = generate(&server.address, &keys).wait().expect_code(0);
    assert!(number(&ended, "resumed") > 0, "{ended}");
    assert_eq!(database_size(&server.address).await, 50_000);
}

#[tokio::test]
async fn a_server_that_throws_keys_away_is_told() {
    let _turn = docker_shared();
    let server = own_redis();
    leave_no_memory(&server.address, 2 << 20).await;
    configure(&server.address, "maxmemory-policy", "volatile-ttl").await;
    let ended = generate(&server.address, &["--keys", "50k", "--ttl", "10m"]);
    let ended = ended.wait().expect_code(0);
    let evicted = number(&ended, "evicted");
    let present = database_size(&server.address).await;
    // The marker has a TTL as well, and may be among them.
    assert!(
        (50_000..=50_001).contains(&(present + evicted)),
        "{present} {ended}"
    );
}

fn generate(address: &str, more: &[&str]) -> Running {
    let given = ["gen", "--redis", address];
    start(command([&given, more].concat()))
}

fn generate_many(address: &str) -> Running {
    let (keys, batch, connections) = (MANY.to_string(), BATCH.to_string(), CONNECTIONS.to_string());
    let sizes = ["--pipeline", &batch, "--connections", &connections];
    generate(
        address,
        &[&["--keys", &keys, "--ttl", "10m"], &sizes[..]].concat(),
    )
}

/// The first number of a line of the summary.
fn number(ended: &Ended, line: &str) -> u64 {
    let found = ended
        .stdout
        .lines()
        .find_map(|text| text.strip_prefix(line));
    let found = found.unwrap_or_else(|| panic!("no {line}: {ended}"));
    let digits: String = found
        .trim_start()
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or_else(|_| panic!("{line}: {ended}"))
}

/// Returns when a fill is well under way.
async fn until_some(address: &str) {
    for _ in 0..5_000 {
        if database_size(address).await > 1_000 {
            return;
        }
        sleep(Duration::from_millis(2)).await;
    }
    panic!("no keys come");
}

async fn everything(address: &str) -> BTreeMap<String, String> {
    let mut redis = connection_to(address).await;
    let keys: Vec<String> = redis.keys("*").await.unwrap();
    let values: Vec<String> = redis.mget(&keys).await.unwrap();
    keys.into_iter().zip(values).collect()
}
