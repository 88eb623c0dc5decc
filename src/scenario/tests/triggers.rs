use super::*;

#[test]
fn waits_that_can_never_end_are_refused() {
    for (from, to, expected) in rows! {
        ", gate: before_write", "" => "`a.at_gate` never comes: worker `a` has no gate";
        "a.at_gate", "a.at_gate#2" => "it comes at most 1 time(s)";
        "a.at_gate", "a.done#2" => "it comes at most 1 time(s)";
        "when: b.write_accepted", "when: a.released" => "worker `a` stands still until this resumes it";
        "a: { key: k,", "a: { start: b.done, key: k," => "never starts";
        "start: a.paused", "start: b.acquired" => "never starts";
        "a: { key: k,", "a: { start: resource.write_accepted, key: k," => "worker `a` never starts";
        "  - { when: b.write_accepted, do: { resume: a } }\n", "" => "nothing resumes `a`";
        "{ resume: a }", "{ resume: b }" => "nothing pauses `b`";
    } {
        refused(from, to, expected);
    }
}

#[test]
fn services_entries_and_the_start_tell_events_too() {
    for timeline in [
        "  - { when: scenario.started, do: { restart: redis } }\n  - { when: redis.restarted, do: { drop: a } }",
        "  - { name: cut, when: a.acquired#9, do: { drop: a, for: 1s } }\n  - { when: cut.began, do: { kill: b } }\n  - { when: cut.ended, do: { kill: a } }",
        "  - { name: cut, after: 1s, do: { drop: a } }\n  - { when: cut.began, after: 1s, do: { heal: cut } }\n  - { when: cut.ended, do: { kill: a } }",
        "  - { after: 1s, do: { kill: redis, for: 1s } }\n  - { when: redis.killed, do: { drop: a } }\n  - { when: redis.restarted, do: { drop: b } }",
        "  - { after: 1s, do: { isolate: resource, for: 1s } }\n  - { when: resource.isolated, do: { skew: a, by: 1s } }\n  - { when: a.skewed, do: { skew: b, by: 1s } }",
        "  - { after: 1s, do: { freeze: { one_of: [a, b] }, for: 3s } }\n  - { when: b.thawed, do: { drop: a } }",
        "  - { after: 1s, repeat: 3, do: { pause: a, for: 3s } }\n  - { when: a.resumed#3, do: { drop: a } }",
        "  - { name: x, after: 1s, do: { pause: a } }\n  - { when: x.began, do: { heal: x } }\n  - { when: a.resumed, do: { drop: a } }",
    ] {
        taken("redis", timeline);
    }
}

#[test]
fn events_that_nothing_brings_about_are_refused() {
    let base = "  - { name: cut, after: 1s, do: { drop: a } }\n";
    for (when, expected) in rows! {
        "redis.restarted" => "no step of the timeline says `restart: redis` or `restart-empty: redis`";
        "redis.acquired" => "unknown event of a service `acquired`";
        "cut.endde" => "unknown event of an entry `endde`; did you mean `ended`?";
        "cut.ended" => "something of it stays; give that a `for`, or add a `heal: cut`";
        "cut.began#2" => "it comes at most 1 time(s)";
        "cutt.began" => "did you mean `cut`?";
        "a.losing_packets#2" => "it comes at most 1 time(s)";
        "a.paused" => "no step of the timeline says `pause: a`";
        "scenario.stopped" => "unknown event of the scenario `stopped`";
        "scenario.started#2" => "a scenario starts once";
        "resource.paused" => "no step of the timeline says `pause: resource`";
        "redis-replica.isolated" => "no step of the timeline says `isolate: redis-replica`";
    } {
        let timeline = format!("{base}  - {{ when: {when}, do: {{ drop: b }} }}");
        refuses("redis", &timeline, when, expected);
    }
}

#[test]
fn entries_that_wait_for_each_other_are_refused() {
    let own = "  - { name: cut, when: cut.began, do: { drop: a } }";
    refuses("redis", own, "cut.began", "it waits for this entry");
    let pause = "  - { when: a.paused, do: { pause: a, for: 3s } }";
    one_says(&said("redis", pause), "it waits for this entry");
    let ring = "  - { name: x, when: y.began, do: { drop: a } }\n  - { name: y, when: x.began, do: { drop: b } }";
    assert_eq!(said("redis", ring).len(), 2);
    let start = with_timeline("redis", "  - { when: b.done, name: x, do: { drop: a } }");
    let start = start.replace("b: { key: k }", "b: { key: k, start: x.began }");
    let lines = said_about("redis.yml", &start);
    only_says(&lines, "worker `b` never starts");
}
