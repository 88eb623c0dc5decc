use super::*;
use crate::model::{ClockName, FaultKind, FaultParameters, Name};

#[test]
fn faults_of_nodes_are_read_as_they_are_written() {
    let none = FaultParameters::default();
    let lost = |percent| FaultParameters {
        percent: Some(percent),
        ..none
    };
    let moved = |clock, by_ms, ppm| FaultParameters {
        clock: Some(clock),
        by_ms,
        ppm,
        ..none
    };
    let (real, monotonic) = (ClockName::Realtime, ClockName::Monotonic);
    for (step, node, kind, parameters) in rows! {
        "kill: redis", "redis", FaultKind::Kill => none;
        "restart: redis", "redis", FaultKind::Restart => none;
        "restart-empty: redis", "redis", FaultKind::RestartEmpty => none;
        "disconnect: redis", "redis", FaultKind::Disconnect => none;
        "promote: redis-replica", "redis-replica", FaultKind::Promote => none;
        "drop: redis", "redis", FaultKind::Drop => lost(100);
        "loss: redis, percent: 30", "redis", FaultKind::Loss => lost(30);
        "skew: redis, by: -15s", "redis", FaultKind::Skew => moved(real, Some(-15_000), None);
        "skew: redis, by: +500ms, clock: monotonic", "redis", FaultKind::Skew => moved(monotonic, Some(500), None);
        "drift: redis, ppm: -20000", "redis", FaultKind::Drift => moved(real, None, Some(-20_000));
    } {
        let expected = Step::Inject {
            fault: vec![Fault::with(kind, Name::from(node), parameters)],
            lasting: None,
        };
        assert_eq!(first_step("redis", step), expected, "{step}");
    }
}

#[test]
fn one_of_several_becomes_that_many_choices() {
    let step = "kill: { one_of: [redis-1, redis-2] }, for: 1s..3s";
    let step = first_step("redlock", step);
    let kill = |node: &str| Fault::of_node(FaultKind::Kill, node.into());
    let expected = Step::Inject {
        fault: vec![kill("redis-1"), kill("redis-2")],
        lasting: Some(Span {
            from: Duration::from_secs(1),
            to: Duration::from_secs(3),
        }),
    };
    assert_eq!(step, expected);
    for (step, at, expected) in rows! {
        "disconnect: { one_of: [redis-1, redis-9] }", "redis-9" => "did you mean `redis-1`?";
        "disconnect: { one_of: [redis-1] }", "[" => "at least two nodes";
        "disconnect: { one_of: [redis-1, redis-1] }", "redis-1]" => "`redis-1` stands here twice";
    } {
        refuses_step("redlock", step, at, expected);
    }
    let other = alone("disconnect: { any_of: [redis-1, redis-2] }");
    one_says(&said("redlock", &other), "did you mean `one_of`?");
}

#[test]
fn what_a_node_cannot_have_is_refused() {
    for (step, at, expected) in rows! {
        "kill: a, for: 2s", "a, for" => "a worker that died stays dead: leave `for` out, and start another one at `a.killed`";
        "restart: a", "a }" => "write `kill: a`, and start another one at `a.killed`";
        "restart-empty: b", "b }" => "a worker that died stays dead";
        "kill: resource", "resource" => "the judge needs `resource` at the end";
        "restart-empty: resource", "resource" => "the log of `resource` is the evidence";
        "promote: redis", "redis }" => "`redis` is no replica; replicas here: redis-replica";
        "disconnect: redsi", "redsi" => "unknown worker or service `redsi`; did you mean `redis`?";
        "disconnect: worker", "worker" => "unknown worker or service `worker`";
        "disconnect: leader", "leader" => "this topology has none";
        "disconnect: any", "any" => "unknown worker or service `any`";
    } {
        refuses_step("redis", step, at, expected);
    }
    let none = "this topology has none";
    refuses_step("redlock", "promote: redis-1", "redis-1", none);
    for step in ["kill: resource, for: 2s", "restart: resource", "kill: a"] {
        taken("redis", &alone(step));
    }
}

#[test]
fn amounts_that_mean_nothing_are_refused() {
    for (step, at, expected) in rows! {
        "loss: redis, percent: 100", "100" => "use `drop`";
        "loss: redis, percent: 0", "0 }" => "`percent` is 1 to 99";
        "loss: redis, percent: -3", "-3" => "`percent` cannot be negative";
        "loss: redis, percent: some", "some" => "`some` is not a whole number";
        "loss: redis", "{ loss" => "`loss` needs `percent`";
        "skew: redis, by: 0s", "0s" => "off by nothing";
        "skew: redis, by: 15", "15" => "`15` is not a duration with a sign";
        "skew: redis, by: -1s, clock: monotonic", "-1s" => "does not go back";
        "skew: redis, by: 1s, clock: monotone", "monotone" => "did you mean `monotonic`?";
        "skew: redis, by: -525601m", "-525601m" => "at most a year, 525600m";
        "skew: redis", "{ skew" => "`skew` needs `by`";
        "drift: redis, ppm: 0", "0 }" => "does not drift";
        "drift: redis, ppm: 1999", "1999" => "could not be read back";
        "skew: redis, by: 19ms", "19ms" => "could not be read back";
        "drift: redis, ppm: 500001", "500001" => "`ppm` is -500000 to 500000";
        "drop: redis, for: 0ms", "0ms" => "cannot be seen";
    } {
        refuses_step("redis", step, at, expected);
    }
}

#[test]
fn the_leader_is_whoever_leads_an_etcd_cluster() {
    for step in [
        "kill: leader, for: 2s",
        "pause: leader, for: 3s",
        "isolate: leader",
        "skew: leader, by: 10s, clock: monotonic",
        "disconnect: { one_of: [leader, etcd-1] }",
    ] {
        taken("etcd", &alone(step));
    }
    for (step, at, expected) in rows! {
        "refuse: a -> leader", "a ->" => "write a name here";
        "partition: [[leader], [etcd-1]]", "leader" => "write a name here";
        "pause: leader", "leader" => "give the entry a name and heal it";
    } {
        refuses_step("etcd", step, at, expected);
    }
    let healed = "  - { name: still, after: 1s, do: { pause: leader } }\n  - { when: leader.paused, do: { heal: still } }";
    taken("etcd", healed);
    let resumed = "  - { name: still, after: 1s, do: [{ pause: leader }, { heal: still }] }\n  - { when: leader.paused, do: { resume: leader } }";
    refuses("etcd", resumed, "leader } }", "another one leads by now");
}

#[test]
fn steps_on_a_node_that_was_just_stopped_are_refused() {
    for (timeline, at) in rows! {
        "  - { after: 1s, do: [{ kill: redis }, { skew: redis, by: 1s }] }" => "redis, by";
        "  - { after: 1s, do: [{ pause: a }, { wait: 1s }, { drift: a, ppm: 9000 }, { resume: a }] }" => "a, ppm";
        "  - { after: 1s, do: [{ kill: a }, { pause: a, for: 3s }] }" => "a, for";
        "  - { after: 1s, do: { pause: a, for: 3s } }\n  - { when: a.paused, do: { skew: a, by: 1s } }" => "a, by";
        "  - { after: 1s, do: [{ pause: a }, { skew: a, by: 1s }] }\n  - { when: b.done, do: { resume: a } }" => "a, by";
    } {
        refuses("redis", timeline, at, "needs it running");
    }
    for timeline in [
        "  - { after: 1s, do: [{ pause: a, for: 3s }, { skew: a, by: 1s }] }",
        "  - { after: 1s, do: [{ pause: a }, { resume: a }, { skew: a, by: 1s }] }",
        "  - { name: x, after: 1s, do: [{ freeze: a }, { heal: x }, { skew: a, by: 1s }] }",
        "  - { after: 1s, do: [{ kill: redis }, { restart: redis }, { skew: redis, by: 1s }] }",
        "  - { after: 1s, do: [{ pause: a }, { kill: a }] }\n  - { when: b.done, do: { resume: a } }",
        // Another entry may have resumed it in the meantime.
        "  - { after: 1s, do: [{ pause: a }, { wait: 9s }, { skew: a, by: 1s }] }\n  - { when: b.done, do: { resume: a } }",
        "  - { after: 1s, do: { pause: a, for: 3s } }\n  - { when: a.paused, after: 4s, do: { skew: a, by: 1s } }",
    ] {
        taken("redis", timeline);
    }
}

#[test]
fn of_a_recorded_run_nothing_is_asked_about_nodes() {
    let timeline = "  - { after: 1s, do: [{ promote: gone }, { partition: [[a], [gone]] }, { refuse: a -> gone, for: 1s }] }\n  - { when: gone.promoted, do: { isolate: gone } }";
    let text = with_timeline("redis", timeline);
    let (file, none) = (Path::new("other.yml"), Settings::default());
    Scenario::parse(file, &text, &none, &Surroundings::Recorded).unwrap();
    assert!(!said("redis", timeline).is_empty());
}
