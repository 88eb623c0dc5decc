use super::timeline::{Step, Timeline};
use super::*;
use crate::model::Backend;
use std::collections::BTreeMap;

const GOOD: &str = "\
name: good
about: A hypothesis.
topology: redis
lock: { backend: redis, ttl: 2s }
workers:
  a: { key: k, gate: before_write }
  b: { key: k, start: a.paused }
timeline:
  - { when: a.at_gate, do: { pause: a, longer_than: ttl } }
  - { when: b.write_accepted, do: { resume: a } }
cases:
  unfenced: { fence: off, expect: { violations: 1.. } }
";

fn parse(text: &str) -> Result<Scenario, InvalidFile> {
    let redis = TopologyFacts {
        services: vec!["redis".to_owned(), "resource".to_owned()],
        backend: Some(Backend::Redis),
    };
    let around = Surroundings::Topologies(BTreeMap::from([("redis".to_owned(), redis)]));
    Scenario::parse(Path::new("good.yml"), text, &around)
}

/// The complaints about the good scenario with `from` replaced by `to`.
fn complaints(from: &str, to: &str) -> Vec<String> {
    assert!(GOOD.contains(from), "the scenario has no `{from}`");
    match parse(&GOOD.replace(from, to)) {
        Ok(_) => Vec::new(),
        Err(error) => error.lines,
    }
}

#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    let lines = complaints(from, to);
    assert!(
        lines.iter().any(|line| line.contains(expected)),
        "`{to}`: expected `{expected}`, got {lines:#?}"
    );
}

#[test]
fn a_good_scenario_is_read_as_it_is_written() {
    let scenario = parse(GOOD).unwrap();
    assert_eq!(scenario.ttl, Duration::from_secs(2));
    assert_eq!(scenario.workers[0].gates, [Gate::BeforeWrite]);
    assert_eq!(scenario.cases[0].fence, Fence::Off);
    let Action::Pause { longer_than, .. } = &scenario.timeline[0].action else {
        panic!("a pause")
    };
    assert_eq!(*longer_than, Some(scenario.ttl));
}

#[test]
fn unknown_keys_get_the_nearest_right_one_with_its_place() {
    refused(
        "workers:",
        "worker:",
        "good.yml:5:1: unknown key in the scenario `worker`; did you mean `workers`?",
    );
    refused(
        "gate:",
        "gaet:",
        "good.yml:6:16: unknown key in worker `a` `gaet`; did you mean `gate`?",
    );
    refused("when: a.at", "wen: a.at", "did you mean `when`?");
    refused("violations:", "violation:", "did you mean `violations`?");
    refused("{ resume: a }", "{ resum: a }", "did you mean `resume`?");
}

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
    refused("start: a.paused", "start: c.paused", "unknown worker `c`");
    refused(
        "when: b.write_accepted",
        "when: d.write_accepted",
        "unknown worker `d`",
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
    refused("pause: a,", "pause: z,", "unknown worker `z`");
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
fn waits_that_can_never_end_are_refused() {
    refused(
        ", gate: before_write",
        "",
        "`a.at_gate` never comes: worker `a` has no gate",
    );
    refused("a.at_gate", "a.at_gate#2", "it comes at most 1 time(s)");
    refused("a.at_gate", "a.done#2", "it comes at most 1 time(s)");
    refused(
        "when: b.write_accepted",
        "when: a.released",
        "worker `a` stands still until this resumes it",
    );
    refused(
        "a: { key: k,",
        "a: { start: b.done, key: k,",
        "never starts",
    );
    refused("start: a.paused", "start: b.acquired", "never starts");
    let nobody = GOOD.replace(
        "a: { key: k,",
        "a: { start: resource.write_accepted, key: k,",
    );
    let lines = parse(&nobody).unwrap_err().lines.join("\n");
    assert!(lines.contains("worker `a` never starts"), "{lines}");
    refused(
        "  - { when: b.write_accepted, do: { resume: a } }\n",
        "",
        "nothing resumes `a`",
    );
    refused("{ resume: a }", "{ resume: b }", "nothing pauses `b`");
}

#[test]
fn a_pause_that_cannot_exceed_the_ttl_is_refused() {
    let resume = "  - { when: b.write_accepted, do: { resume: a } }\n";
    let short = GOOD
        .replace(resume, "")
        .replace("longer_than: ttl", "for: 1s, longer_than: ttl");
    let lines = parse(&short).unwrap_err().lines;
    assert_eq!(
        lines,
        ["good.yml:9:45: a pause of 1s cannot exceed the TTL of 2s"]
    );
    refused(
        "when: b.write_accepted,",
        "when: a.at_gate, after: 2s,",
        "a pause of 2s cannot exceed the TTL of 2s",
    );
    refused(
        "when: b.write_accepted,",
        "when: a.paused, after: 500ms,",
        "a pause of 500ms cannot exceed the TTL of 2s",
    );
    assert!(complaints("when: b.write_accepted,", "when: a.paused, after: 3s,").is_empty());
    refused(
        "longer_than: ttl",
        "for: 3s, longer_than: ttl",
        "keep one of them",
    );
}

#[test]
fn values_that_make_no_sense_are_refused() {
    refused("ttl: 2s", "ttl: 2", "`2` is not a duration");
    refused("ttl: 2s", "ttl: -2s", "`-2s` is not a duration");
    refused("ttl: 2s", "ttl: 0s", "longer than 0ms");
    refused("ttl: 2s", "ttl: 2m", "set `deadline` higher");
    refused("key: k, gate", "key: k, rounds: 0, gate", "rounds are 1 to");
    refused("key: k, gate", "key: '', gate", "a key is 1 to 256 bytes");
    refused(
        "violations: 1..",
        "violations: many",
        "`many` is not a count",
    );
    refused(
        "{ violations: 1.. }",
        "{}",
        "a case that expects nothing proves nothing",
    );
    refused("  a: {", "  A: {", "`A` is not a name");
    refused("  a: {", "  redis: {", "is a service of the topology");
    refused("name: good", "name: other", "give both one name");
    refused("a.at_gate,", "a_at_gate,", "is not an event");
    refused(
        "{ resume: a }",
        "{ resume: a, pause: a }",
        "one action is one fault",
    );
    refused(
        "{ resume: a }",
        "{ resume: a, for: 1s }",
        "only a pause has a length",
    );
    refused(
        "workers:\n  a: { key: k, gate: before_write }\n  b: { key: k, start: a.paused }",
        "workers: [a, b]",
        "expected the workers by name",
    );
}

#[test]
fn a_crowd_is_refused_at_once() {
    let crowd: String = (0..3000)
        .map(|n| format!("  w{n}: {{ key: k }}\n"))
        .collect();
    refused(
        "workers:\n",
        &format!("workers:\n{crowd}"),
        "at most 64 workers",
    );
}

#[test]
fn everything_that_is_wrong_is_said_at_once_in_file_order() {
    let text = GOOD
        .replace("ttl: 2s", "ttl: soon")
        .replace("before_write", "befor_write")
        .replace("b.write_accepted", "c.write_accepted")
        .replace("fence: off", "fence: offf")
        .replace("about:", "abuot:");
    let lines = parse(&text).unwrap_err().lines;
    let parts = [
        "needs `about`",
        "`abuot`",
        "`soon`",
        "`befor_write`",
        "worker `c`",
        "`offf`",
    ];
    assert_eq!(lines.len(), parts.len(), "{lines:#?}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.contains(part), "`{part}` in {lines:#?}");
    }
}

#[test]
fn the_timeline_fires_each_entry_once_when_its_event_comes() {
    let text = GOOD
        .replace("key: k, gate", "key: k, rounds: 3, gate")
        .replace("a.at_gate", "a.at_gate#2");
    let mut timeline = Timeline::new(&parse(&text).unwrap());
    assert!(timeline.event("a", "at_gate").is_empty());
    let due = timeline.event("a", "at_gate");
    assert!(matches!(&due[0].step, Step::Fault { .. }));
    assert!(timeline.event("a", "at_gate").is_empty());
    let due = timeline.event("a", "paused");
    assert_eq!(due[0].step, Step::Start { worker: "b".into() });
    let awaited: Vec<String> = timeline.awaited().iter().map(|t| t.to_string()).collect();
    assert_eq!(awaited, ["b.write_accepted"]);
}

#[test]
fn the_plan_says_what_a_run_would_do() {
    let text = plan(&parse(GOOD).unwrap(), &["redis".to_owned()]);
    for part in [
        "SIGSTOP a",
        "SIGCONT a",
        "when a.paused: b acquires",
        "fence off; expects violations 1..",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}
