use super::*;

#[test]
fn names_that_do_not_exist_are_refused() {
    for (from, to, expected) in rows! {
        "topology: redis", "topology: reddis" => "did you mean `redis`?";
        "backend: redis", "backend: etc" => "unknown backend `etc`";
        "backend: redis", "backend: etcd" => "the topology `redis` has one Redis, and `etcd` needs an etcd cluster";
        "backend: redis, ttl: 2s", "backend: etcd, ttl: 2500ms" => "etcd counts leases in whole seconds";
        "backend: redis", "backend: redis, wait: queu" => "unknown way to wait `queu`; did you mean `queue`?";
        "backend: redis", "backend: redlock, wait: queue" => "`wait` is a choice of the redis backend";
        "backend: redis", "backend: redis, lock_delay: 1s" => "`lock_delay` is a choice of the consul backend, not of redis";
        "backend: redis", "backend: consul, lock_delay: 61s" => "a Consul delays for 60s at most";
        "backend: redis, ttl: 2s", "backend: consul, ttl: 900ms" => "Consul keeps no session for less than 1s";
        "backend: redis", "backend: redis, wait: queue, release: unsafe-get-then-del" => "hands over to nobody";
        "gate: before_write", "gate: between_get_and_del" => "nobody comes to the gate `between_get_and_del`";
        "start: a.paused", "start: c.paused"
            => "unknown worker, service or entry `c`; known: a, b, redis, redis-replica, resource, scenario";
        "when: b.write_accepted", "when: d.write_accepted" => "unknown worker, service or entry `d`";
        "b.write_accepted", "b.write_acepted" => "did you mean `write_accepted`?";
        "b.write_accepted", "resource.written" => "unknown event of the resource";
        "pause: a,", "pause: z," => "unknown worker or service `z`; known: a, b, redis,";
        "gate: before_write", "writes: retry" => "`retry` is no way to write with `resource: http`";
        "before_write", "before_writ" => "did you mean `before_write`?";
        "fence: off", "fence: offf" => "did you mean `off`?";
        "violations: 1..", "violations: { stale: 1 }" => "unknown violation `stale`";
    } {
        refused(from, to, expected);
    }
}

#[test]
fn words_that_mean_something_else_are_no_names() {
    for word in ["leader", "any", "scenario", "resource"] {
        let message = format!("`{word}` means something else in a timeline");
        refused("  b: {", &format!("  {word}: {{"), &message);
    }
    let message = "`worker` is a service of the topology";
    refused("  b: {", "  worker: {", message);
    let mut odd = redis();
    odd.services.push("any".to_owned());
    let around = Surroundings::Here {
        topologies: BTreeMap::from([("redis".to_owned(), odd)]),
        home: vec![Location::from(".")],
    };
    let none = Settings::default();
    let error = Scenario::parse(Path::new("good.yml"), GOOD, &none, &around).unwrap_err();
    assert!(error.lines()[0].contains("has a service `any`"), "{error}");
}

#[test]
fn entries_have_names_of_their_own() {
    let entry = |name: &str| format!("  - {{ name: {name}, after: 1s, do: {{ drop: a }} }}");
    for (name, expected) in [
        ("a", "`a` is a worker; call the entry something else"),
        ("redis", "`redis` is a service of the topology"),
        ("scenario", "means something else"),
        ("Cut", "`Cut` is not a name"),
    ] {
        refuses("redis", &entry(name), &format!("{name}, after"), expected);
    }
    let twice = format!("{}\n{}", entry("cut"), entry("cut"));
    only_says(
        &said("redis", &twice),
        "another entry is called `cut` (line 11)",
    );
}
