use super::*;

#[test]
fn names_that_do_not_exist_are_refused() {
    refused(
        "topology: redis",
        "topology: reddis",
        "did you mean `redis`?",
    );
    refused("backend: redis", "backend: etc", "unknown backend `etc`");
    refused(
        "backend: redis",
        "backend: etcd",
        "the topology `redis` has one Redis, and `etcd` needs an etcd cluster",
    );
    refused(
        "backend: redis, ttl: 2s",
        "backend: etcd, ttl: 2500ms",
        "etcd counts leases in whole seconds",
    );
    refused(
        "backend: redis",
        "backend: redis, wait: queu",
        "unknown way to wait `queu`; did you mean `queue`?",
    );
    refused(
        "backend: redis",
        "backend: redlock, wait: queue",
        "`wait` is a choice of the redis backend",
    );
    refused(
        "backend: redis",
        "backend: redis, wait: queue, release: unsafe-get-then-del",
        "hands over to nobody",
    );
    refused(
        "gate: before_write",
        "gate: between_get_and_del",
        "nobody comes to the gate `between_get_and_del`",
    );
    refused(
        "start: a.paused",
        "start: c.paused",
        "unknown worker, service or entry `c`; known: a, b, redis, redis-replica, resource, scenario",
    );
    refused(
        "when: b.write_accepted",
        "when: d.write_accepted",
        "unknown worker, service or entry `d`",
    );
    refused(
        "b.write_accepted",
        "b.write_acepted",
        "did you mean `write_accepted`?",
    );
    refused(
        "b.write_accepted",
        "resource.written",
        "unknown event of the resource",
    );
    refused(
        "pause: a,",
        "pause: z,",
        "unknown worker or service `z`; known: a, b, redis,",
    );
    refused(
        "before_write",
        "before_writ",
        "did you mean `before_write`?",
    );
    refused("fence: off", "fence: offf", "did you mean `off`?");
    refused(
        "violations: 1..",
        "violations: { stale: 1 }",
        "unknown violation `stale`",
    );
}

#[test]
fn words_that_mean_something_else_are_no_names() {
    for word in ["leader", "any", "scenario", "resource"] {
        let message = format!("`{word}` means something else in a timeline");
        refused("  b: {", &format!("  {word}: {{"), &message);
    }
    refused(
        "  b: {",
        "  worker: {",
        "`worker` is a service of the topology",
    );
    let mut odd = redis();
    odd.services.push("any".to_owned());
    let around = Surroundings::Here {
        topologies: BTreeMap::from([("redis".to_owned(), odd)]),
        folder: ".".into(),
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
    let lines = said("redis", &twice);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    assert!(
        lines[0].contains("another entry is called `cut` (line 11)"),
        "{lines:#?}"
    );
}
