//! Servers that were there before: used, and left as they were.

mod faulted;
mod kit;
mod pooler;
mod refused;

use crate::support::*;
use etcd_client::{Client, GetOptions};
use fencing_lock::servers::connect_postgres;
use kit::{attached, names, of_a_redis, result, setting};
use std::time::Duration;

#[tokio::test]
async fn a_redis_keeps_what_it_had_and_gets_nothing_else() {
    let _turn = docker_shared();
    let redis = own_redis();
    of_a_redis(&redis, &["SET", "user:1", "kept"]).await;
    for runtime in ["docker", "local"] {
        let folder = fresh_folder(&format!("attached-redis-{runtime}"));
        let at = format!("topology.attach.redis={}", redis.address);
        let run = ["run", SCENARIO, "--runtime", runtime, "--set", &at];
        let ended = attached(&run, &folder).expect_code(0);
        ended.expect_said(&[
            "looks like production: 1 key",
            "written there: keys whose names have fencepost-RUN-",
            "nobody watches it",
        ]);
        assert_eq!(names(&redis).await, ["user:1"], "{runtime}");
        assert_eq!(setting(&redis).await, "", "{runtime}");
        let result = result(&folder, SCENARIO);
        let shown = result["environment"]["attached redis"].as_str().unwrap();
        assert!(shown.ends_with(&redis.address), "{shown}");
    }
}

#[tokio::test]
async fn a_setting_that_may_be_changed_is_changed_for_as_long_as_a_case_runs() {
    let _turn = docker_shared();
    let redis = own_redis();
    let set = ["CONFIG", "SET", "notify-keyspace-events", "Ex"];
    of_a_redis(&redis, &set).await;
    let was = setting(&redis).await;
    let folder = fresh_folder("attached-setting");
    let at = format!(
        "topology={{ attach: {{ redis: '{}' }}, allow_settings_on: [redis] }}",
        redis.address
    );
    let run = ["run", SCENARIO, "--runtime", "local", "--set", &at];
    attached(&run, &folder).expect_code(0);
    assert_eq!(setting(&redis).await, was);
    let locks = rows(&folder.join(SCENARIO).join("latest/fenced/locks.jsonl"));
    assert!(
        locks.iter().any(|row| row["event"] == "expired"),
        "{locks:?}"
    );
    let is_own = |row: &serde_json::Value| {
        let key = row["key"].as_str().unwrap_or_default();
        key.starts_with("fencepost-") && key.ends_with("-account-42")
    };
    assert!(locks.iter().all(is_own), "{locks:?}");
    assert_eq!(names(&redis).await, [""; 0]);
}

#[tokio::test]
async fn an_etcd_is_watched_and_left_as_it_was() {
    let _turn = docker_shared();
    let etcd = own_small_etcd(64 << 20);
    let mut client = Client::connect([&etcd.address], None).await.unwrap();
    client
        .put("/locks/of-the-user", "kept", None)
        .await
        .unwrap();
    let scenario = "pause-gt-ttl-etcd";
    for runtime in ["docker", "local"] {
        let folder = fresh_folder(&format!("attached-etcd-{runtime}"));
        let at = format!("topology.attach.etcd={}", etcd.address);
        let run = ["run", scenario, "--runtime", runtime, "--set", &at];
        attached(&run, &folder).expect_code(0);
        let locks = rows(&folder.join(scenario).join("latest/fenced/locks.jsonl"));
        assert!(!locks.is_empty(), "it was watched on {runtime}");
        let all = GetOptions::new().with_from_key();
        let left = until_async("the sessions of workers to end", async || {
            let all = client
                .kv_client()
                .get("\0", Some(all.clone()))
                .await
                .unwrap();
            let names = all.kvs().iter().map(|it| it.key_str().unwrap().to_owned());
            let names: Vec<String> = names.collect();
            (!names.iter().any(|name| name.starts_with("/sessions/"))).then_some(names)
        });
        assert_eq!(left.await, ["/locks/of-the-user"], "{runtime}");
    }
}

#[tokio::test]
async fn a_postgres_has_the_schema_of_a_run_for_as_long_as_it_runs() {
    let _turn = docker_shared();
    let postgres = own_postgres();
    let session = connect_postgres(&postgres.address, Duration::from_secs(5), |_| {});
    let session = session.await.unwrap();
    session
        .batch_execute("CREATE TABLE orders (id int)")
        .await
        .unwrap();
    let waits = "postgres-advisory-stopped-holder";
    for (scenario, runtime, case) in [
        ("pause-gt-ttl-postgres", "docker", "fenced"),
        (waits, "local", "everybody-waits"),
    ] {
        let folder = fresh_folder(&format!("attached-{scenario}"));
        let at = format!("topology.attach.postgres={}", postgres.address);
        let run = ["run", scenario, "--runtime", runtime, "--case", case];
        let run = [&run[..], &["--set", &at]].concat();
        let ended = attached(&run, &folder).expect_code(0);
        ended.expect_said(&["1 table", "the schema fencepost_RUN"]);
        for (question, expected) in [
            (
                "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'fencepost%'",
                0,
            ),
            ("SELECT count(*) FROM pg_db_role_setting", 0),
            (
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'",
                1,
            ),
        ] {
            let row = session.query_one(question, &[]).await.unwrap();
            assert_eq!(row.get::<_, i64>(0), expected, "{scenario}: {question}");
        }
        let locks = folder.join(scenario).join("latest").join(case);
        assert!(!rows(&locks.join("locks.jsonl")).is_empty(), "{scenario}");
    }
}

/// Polls until there is a result; only for things that send no event.
async fn until_async<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let give_up_at = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(
            std::time::Instant::now() < give_up_at,
            "{what} did not come"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
