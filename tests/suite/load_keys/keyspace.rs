use super::{database_size, leave_no_memory};
use crate::redis_lock::kit::{NOBODY, SECOND};
use crate::support::{
    Silent, connection_to, docker_shared, fresh_folder, own_etcd, own_redis, own_small_etcd,
};
use etcd_client::{Client, GetOptions};
use fencepost::load::KeyspacePlan;
use fencepost::load::{LoadError, keyspace};
use fencepost::model::{EtcdGrowth, KeyspaceRecord, RedisKeyspace};
use fencepost::run::{LocalRequest, ServerAddresses, run_local};
use fencepost::scenario::{Scenario, Settings, Surroundings};
use fencepost::services::Backend;
use redis::cmd;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

const KEYS: u64 = 20_000;
/// Also on a slow machine: there is a moment at which all are there.
const LONGER_THAN_A_FILL: Duration = Duration::from_secs(3);

fn plan(keys: u64, ttl: Duration) -> KeyspacePlan {
    KeyspacePlan {
        keys,
        ttl,
        counters: None,
        effort: None,
        scan: false,
        watch: None,
    }
}

/// What came of it, and the last record that was told. It is interrupted at the first
/// sample that `enough` says so of.
async fn run(
    plan: &KeyspacePlan,
    backend: Backend,
    address: &str,
    enough: impl Fn(&KeyspaceRecord) -> bool + Send + Sync,
) -> (Result<(), LoadError>, KeyspaceRecord) {
    let (interrupt, mut last) = (CancellationToken::new(), KeyspaceRecord::default());
    let mut on_sample = |record: &KeyspaceRecord| {
        if enough(record) {
            interrupt.cancel();
        }
        last = record.clone();
    };
    let servers = [address.to_owned()];
    let ended = keyspace(
        plan,
        backend,
        &servers,
        3,
        &Silent,
        &interrupt,
        &mut on_sample,
    )
    .await;
    (ended, last)
}

async fn on_redis(plan: &KeyspacePlan, address: &str) -> (Result<(), LoadError>, RedisKeyspace) {
    let (ended, record) = run(plan, Backend::Redis, address, |_| false).await;
    (ended, record.redis.expect("a sample was told"))
}

async fn on_etcd(plan: &KeyspacePlan, address: &str) -> (Result<(), LoadError>, EtcdGrowth) {
    let (ended, record) = run(plan, Backend::Etcd, address, |_| false).await;
    (ended, record.etcd.expect("a sample was told"))
}

#[tokio::test]
async fn dead_locks_are_watched_until_they_are_gone() {
    let _turn = docker_shared();
    let server = own_redis();
    let mut redis = connection_to(&server.address).await;
    let mut other = cmd("SET");
    other.arg("somebody").arg("else");
    other.query_async::<()>(&mut redis).await.unwrap();
    let plan = KeyspacePlan {
        effort: Some(5),
        ..plan(KEYS, LONGER_THAN_A_FILL)
    };
    let (ended, seen) = on_redis(&plan, &server.address).await;
    ended.unwrap();
    assert_eq!((seen.keys, seen.ttl_ms), (KEYS, 3_000));
    let phases: Vec<&str> = seen.samples.iter().map(|s| s.phase.as_str()).collect();
    assert!(
        phases.contains(&"filling") && phases.contains(&"dead"),
        "{phases:?}"
    );
    let filled = seen.samples.iter().map(|sample| sample.present).max();
    assert_eq!(filled, Some(KEYS));
    let last = seen.samples.last().unwrap();
    assert_eq!((last.present, last.alive, last.expired), (0, 0, KEYS));
    assert_eq!(last.expired_active, KEYS, "nobody else looked");
    let figure = |name: &str| seen.figures.get(name).copied().unwrap_or(-1.0);
    // Key, value, two entries of tables: no lock costs less or much more.
    assert!(
        (100.0..1_000.0).contains(&figure("bytes_per_key")),
        "{:?}",
        seen.figures
    );
    assert!(figure("dead_seconds") >= 0.0 && figure("expired_per_s_max") > 0.0);
    assert_eq!(figure("active_expire_effort"), 5.0);
    assert_eq!(
        database_size(&server.address).await,
        1,
        "somebody else's stays"
    );
    assert_eq!(effort(&server.address).await, "1", "put back");
}

#[tokio::test]
async fn a_scan_reclaims_what_it_meets_and_counters_are_removed() {
    let _turn = docker_shared();
    let server = own_redis();
    // The server's own cycle leaves everything to the scan.
    let mut debug = cmd("DEBUG");
    debug.arg("SET-ACTIVE-EXPIRE").arg("0");
    let mut redis = connection_to(&server.address).await;
    debug.query_async::<()>(&mut redis).await.unwrap();
    let plan = KeyspacePlan {
        counters: Some(60 * SECOND),
        scan: true,
        ..plan(KEYS, LONGER_THAN_A_FILL)
    };
    let (ended, seen) = on_redis(&plan, &server.address).await;
    ended.unwrap();
    let last = seen.samples.last().unwrap();
    assert_eq!((last.present, last.alive, last.expired), (KEYS, KEYS, KEYS));
    let reclaimed = seen.figures["scan_reclaimed_keys"];
    assert_eq!((last.expired - last.expired_active) as f64, reclaimed);
    assert!(reclaimed > 0.0, "{:?}", seen.figures);
    assert!((40.0..500.0).contains(&seen.figures["counters_bytes_per_key"]));
    assert_eq!(
        database_size(&server.address).await,
        0,
        "counters are removed"
    );
}

#[tokio::test]
async fn a_server_without_memory_cuts_it_short_and_nothing_is_left() {
    let _turn = docker_shared();
    let server = own_redis();
    leave_no_memory(&server.address, 1 << 20).await;
    let (ended, seen) = on_redis(&plan(KEYS, 60 * SECOND), &server.address).await;
    let text = ended.unwrap_err().to_string();
    assert!(text.contains("cut short") && text.contains("OOM"), "{text}");
    let most = seen.samples.iter().map(|sample| sample.present).max();
    assert!(most > Some(0) && most < Some(KEYS), "{most:?}");
    assert_eq!(database_size(&server.address).await, 0);
}

#[tokio::test]
async fn interrupted_it_removes_its_keys_and_puts_the_effort_back() {
    let _turn = docker_shared();
    let server = own_redis();
    let plan = KeyspacePlan {
        effort: Some(10),
        ..plan(KEYS, 60 * SECOND)
    };
    let is_alive = |record: &KeyspaceRecord| {
        let last = record.redis.as_ref().and_then(|redis| redis.samples.last());
        last.is_some_and(|sample| sample.phase == "alive")
    };
    let (ended, _) = run(&plan, Backend::Redis, &server.address, is_alive).await;
    let text = ended.unwrap_err().to_string();
    assert!(text.contains("interrupted; 20,000 of 20,000"), "{text}");
    assert_eq!(database_size(&server.address).await, 0);
    assert_eq!(effort(&server.address).await, "1");
}

/// What was made is removed then as well, and what was measured is kept.
#[tokio::test]
async fn at_its_deadline_it_is_told_to_stop_and_not_dropped() {
    let _turn = docker_shared();
    let server = own_redis();
    let text = "name: keyspace\nabout: A hypothesis.\nkind: load\ntopology: redis\n\
                lock: { backend: redis, ttl: 60m }\nkeyspace: { keys: 20k, effort: 10 }\n\
                cases: { redis: {} }\n";
    let settings = Settings::default();
    let around = Surroundings::Recorded;
    let scenario = Scenario::parse(Path::new("keyspace.yml"), text, &settings, &around);
    let mut scenario = scenario.unwrap();
    scenario.cases[0].setup.deadline = SECOND;
    let request = LocalRequest {
        scenario: &scenario,
        servers: ServerAddresses::new("redis", vec![server.address.clone()]),
        resource: None,
        seed: 3,
        results: fresh_folder("keyspace-deadline"),
    };
    let ran = run_local(&request, &Silent, &CancellationToken::new()).await;
    let load = ran.unwrap().cases.remove(0).notes.load.unwrap();
    let reason = load.partial.expect("it was cut short");
    assert!(reason.starts_with("gave up after 1s: "), "{reason}");
    assert!(load.keyspace.is_some(), "what was measured");
    assert_eq!(database_size(&server.address).await, 0);
    assert_eq!(effort(&server.address).await, "1");
}

#[tokio::test]
async fn leases_grow_a_database_and_compaction_gives_it_back() {
    let _turn = docker_shared();
    let server = own_etcd();
    let (ended, seen) = on_etcd(&plan(500, 2 * SECOND), &server.address).await;
    ended.unwrap();
    assert_eq!(seen.leases, 500);
    for phase in [
        "before",
        "granting",
        "expiring",
        "compacted",
        "defragmented",
    ] {
        let found = seen.samples.iter().any(|sample| sample.phase == phase);
        assert!(found, "{phase}: {:?}", seen.samples);
    }
    let (first, last) = (&seen.samples[0], seen.samples.last().unwrap());
    assert!(last.revision >= first.revision + 1_000, "put and gone");
    assert_eq!(last.leases, 0);
    assert!(first.resident_memory > 0);
    assert!(
        seen.figures["compaction_frees_inside_bytes"] > 0.0,
        "{:?}",
        seen.figures
    );
    assert!(seen.figures["granted_per_s"] > 0.0);
    assert!(
        seen.extrapolation.contains("not measured"),
        "{}",
        seen.extrapolation
    );
    assert_eq!(left_in_etcd(&server.address).await, (0, 0));
}

#[tokio::test]
async fn leases_that_live_on_are_revoked() {
    let _turn = docker_shared();
    let server = own_etcd();
    let plan = KeyspacePlan {
        watch: Some(Duration::ZERO),
        ..plan(200, 600 * SECOND)
    };
    let (ended, seen) = on_etcd(&plan, &server.address).await;
    ended.unwrap();
    assert!(seen.figures["revoked_per_s"] > 0.0);
    assert_eq!(left_in_etcd(&server.address).await, (0, 0));
}

#[tokio::test]
async fn a_full_etcd_cuts_it_short_and_can_be_written_to_again() {
    let _turn = docker_shared();
    let server = own_small_etcd(256 << 10);
    let (ended, seen) = on_etcd(&plan(20_000, 600 * SECOND), &server.address).await;
    let text = ended.unwrap_err().to_string();
    assert!(
        text.contains("quota") && text.contains("of 20,000 leases"),
        "{text}"
    );
    assert!(seen.leases > 0 && seen.leases < 20_000);
    assert_eq!(left_in_etcd(&server.address).await, (0, 0));
    let mut client = Client::connect([&server.address], None).await.unwrap();
    client
        .put("a", "b", None)
        .await
        .expect("there is room again");
}

#[tokio::test]
async fn mistakes_and_wrong_addresses_are_told() {
    let tell = async |plan: &KeyspacePlan, kind, address: &str| {
        let (ended, _) = run(plan, kind, address, |_| false).await;
        ended.unwrap_err().to_string()
    };
    let bad = KeyspacePlan {
        effort: Some(0),
        ..plan(0, SECOND)
    };
    let text = tell(&bad, Backend::Etcd, NOBODY).await;
    for field in ["keys:", "ttl:", "effort:"] {
        assert!(text.contains(field), "{field} {text}");
    }
    for kind in [Backend::Redis, Backend::Etcd] {
        let text = tell(&plan(10, 2 * SECOND), kind, NOBODY).await;
        assert!(
            text.contains(NOBODY) && text.contains("does not answer"),
            "{text}"
        );
    }
}

async fn effort(address: &str) -> String {
    let mut redis = connection_to(address).await;
    let mut get = cmd("CONFIG");
    get.arg("GET").arg("active-expire-effort");
    let answer: BTreeMap<String, String> = get.query_async(&mut redis).await.unwrap();
    answer["active-expire-effort"].clone()
}

/// Keys and leases.
async fn left_in_etcd(address: &str) -> (i64, usize) {
    let mut client = Client::connect([address], None).await.unwrap();
    let all = GetOptions::new().with_all_keys().with_count_only();
    let keys = client.get("", Some(all)).await.unwrap().count();
    (keys, client.leases().await.unwrap().leases().len())
}
