//! The keys at which another library keeps its locks: `lock: { key: "/locks/{key}" }`.

use super::*;

const IMAGE: &str = "worker: { image: 'mine:1' }\nworkers:";

/// Returns the good scenario with a worker image and this lock.
fn with_lock(lock: &str) -> String {
    GOOD.replace("workers:", IMAGE)
        .replace("{ backend: redis, ttl: 2s }", lock)
}

#[track_caller]
fn refuses_lock(text: &str, expected: &str) {
    only_says(&said_about("good.yml", text), expected);
}

#[test]
fn workers_have_the_scenarios_template_or_their_own() {
    let text = with_lock(r#"{ backend: redis, ttl: 2s, key: "my:{key}" }"#).replace(
        "b: { key: k,",
        r#"b: { key: k, lock: { key: "other:{key}:lock" },"#,
    );
    let scenario = parse(&text).unwrap();
    let plan = plan(&scenario, |_| Vec::new()).to_string();
    let words = "a acquires `k` (its lock is `my:k`)";
    assert!(plan.contains(words), "{plan}");
    let keys = the_setup(scenario).workers.into_iter();
    let keys = keys.map(|worker| worker.lock_key.unwrap().render("x"));
    assert_eq!(keys.collect::<Vec<_>>(), ["my:x", "other:x:lock"]);
}

#[test]
fn template_without_a_place_for_the_key_is_refused_where_it_stands() {
    for bad in [r#""locks""#, r#""{key}{key}""#, r#""a\n{key}""#, r#""""#] {
        let text = with_lock(&format!("{{ backend: redis, ttl: 2s, key: {bad} }}"));
        let expected = "good.yml:4:39: the name of a lock's key has 1 to 200 bytes";
        refuses_lock(&text, expected);
    }
}

#[test]
fn template_is_for_the_locks_of_other_libraries() {
    let expected = "good.yml:4:39: fencepost's own locks have names of their own";
    refused("ttl: 2s }", r#"ttl: 2s, key: "my:{key}" }"#, expected);
}

#[test]
fn templates_that_can_name_one_key_are_refused() {
    let text = with_lock(r#"{ backend: redis, ttl: 2s, key: "my:{key}" }"#);
    let own = r#"b: { key: k, lock: { key: "my:own:{key}" },"#;
    let expected = "`my:{key}` and `my:own:{key}` can name the same key";
    refuses_lock(&text.replace("b: { key: k,", own), expected);
}

#[test]
fn key_with_a_slash_cannot_be_told_from_a_place_in_an_etcd() {
    let text = with_lock(r#"{ backend: etcd, ttl: 2s, key: "/my/{key}" }"#)
        .replace("topology: redis", "topology: etcd")
        .replace("a: { key: k,", "a: { key: k/l,");
    refuses_lock(&text, "in an etcd `/` parts a lock from the places");
}
