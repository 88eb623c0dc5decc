use super::*;
use crate::model::{ClockName, Name};

#[test]
fn faults_of_nodes_are_read_as_they_are_written() {
    let node = || Name::from("redis");
    for (step, expected) in [
        ("kill: redis", Fault::Kill { node: node() }),
        ("restart: redis", Fault::Restart { node: node() }),
        ("restart-empty: redis", Fault::RestartEmpty { node: node() }),
        ("disconnect: redis", Fault::Disconnect { node: node() }),
        (
            "drop: redis",
            Fault::Loss {
                node: node(),
                percent: 100,
            },
        ),
        (
            "loss: redis, percent: 30",
            Fault::Loss {
                node: node(),
                percent: 30,
            },
        ),
        (
            "skew: redis, by: -15s",
            Fault::Skew {
                node: node(),
                clock: ClockName::Realtime,
                by_ms: -15_000,
            },
        ),
        (
            "skew: redis, by: +500ms, clock: monotonic",
            Fault::Skew {
                node: node(),
                clock: ClockName::Monotonic,
                by_ms: 500,
            },
        ),
        (
            "drift: redis, ppm: -20000",
            Fault::Drift {
                node: node(),
                clock: ClockName::Realtime,
                ppm: -20_000,
            },
        ),
    ] {
        let expected = Step::Inject {
            choices: vec![expected],
            lasting: None,
        };
        assert_eq!(first_step("redis", step), expected, "{step}");
    }
    let promoted = Step::Inject {
        choices: vec![Fault::Promote {
            node: "redis-replica".into(),
        }],
        lasting: None,
    };
    assert_eq!(first_step("redis", "promote: redis-replica"), promoted);
}

#[test]
fn one_of_several_becomes_that_many_choices() {
    let step = first_step(
        "redlock",
        "kill: { one_of: [redis-1, redis-2] }, for: 1s..3s",
    );
    let kill = |node: &str| Fault::Kill { node: node.into() };
    let expected = Step::Inject {
        choices: vec![kill("redis-1"), kill("redis-2")],
        lasting: Some(Span {
            from: Duration::from_secs(1),
            to: Duration::from_secs(3),
        }),
    };
    assert_eq!(step, expected);
    let every_choice = "disconnect: { one_of: [redis-1, redis-9] }";
    refuses_step(
        "redlock",
        every_choice,
        "redis-9",
        "did you mean `redis-1`?",
    );
    let one = "disconnect: { one_of: [redis-1] }";
    refuses_step("redlock", one, "[", "at least two nodes");
    let twice = "disconnect: { one_of: [redis-1, redis-1] }";
    refuses_step("redlock", twice, "redis-1]", "`redis-1` stands here twice");
    let other = "disconnect: { any_of: [redis-1, redis-2] }";
    let lines = said(
        "redlock",
        &format!("  - {{ after: 1s, do: {{ {other} }} }}"),
    );
    assert!(
        lines
            .iter()
            .any(|line| line.contains("did you mean `one_of`?")),
        "{lines:#?}"
    );
}

#[test]
fn what_a_node_cannot_have_is_refused() {
    for (step, at, expected) in [
        (
            "kill: a, for: 2s",
            "a, for",
            "a worker that died stays dead: leave `for` out, and start another one at `a.killed`",
        ),
        (
            "restart: a",
            "a }",
            "write `kill: a`, and start another one at `a.killed`",
        ),
        ("restart-empty: b", "b }", "a worker that died stays dead"),
        (
            "kill: resource",
            "resource",
            "the judge needs `resource` at the end",
        ),
        (
            "restart-empty: resource",
            "resource",
            "the log of `resource` is the evidence",
        ),
        (
            "promote: redis",
            "redis }",
            "`redis` is no replica; replicas here: redis-replica",
        ),
        (
            "disconnect: redsi",
            "redsi",
            "unknown worker or service `redsi`; did you mean `redis`?",
        ),
        (
            "disconnect: worker",
            "worker",
            "unknown worker or service `worker`",
        ),
        ("disconnect: leader", "leader", "this topology has none"),
        ("disconnect: any", "any", "unknown worker or service `any`"),
    ] {
        refuses_step("redis", step, at, expected);
    }
    refuses_step(
        "redlock",
        "promote: redis-1",
        "redis-1",
        "this topology has none",
    );
    taken(
        "redis",
        "  - { after: 1s, do: { kill: resource, for: 2s } }",
    );
    taken("redis", "  - { after: 1s, do: { restart: resource } }");
    taken("redis", "  - { after: 1s, do: { kill: a } }");
}

#[test]
fn amounts_that_mean_nothing_are_refused() {
    for (step, at, expected) in [
        ("loss: redis, percent: 100", "100", "use `drop`"),
        ("loss: redis, percent: 0", "0 }", "`percent` is 1 to 99"),
        (
            "loss: redis, percent: -3",
            "-3",
            "`percent` cannot be negative",
        ),
        (
            "loss: redis, percent: some",
            "some",
            "`some` is not a whole number",
        ),
        ("loss: redis", "{ loss", "`loss` needs `percent`"),
        ("skew: redis, by: 0s", "0s", "off by nothing"),
        (
            "skew: redis, by: 15",
            "15",
            "`15` is not a duration with a sign",
        ),
        (
            "skew: redis, by: -1s, clock: monotonic",
            "-1s",
            "does not go back",
        ),
        (
            "skew: redis, by: 1s, clock: monotone",
            "monotone",
            "did you mean `monotonic`?",
        ),
        (
            "skew: redis, by: -525601m",
            "-525601m",
            "at most a year, 525600m",
        ),
        ("skew: redis", "{ skew", "`skew` needs `by`"),
        ("drift: redis, ppm: 0", "0 }", "does not drift"),
        ("drift: redis, ppm: 1999", "1999", "could not be read back"),
        ("skew: redis, by: 19ms", "19ms", "could not be read back"),
        (
            "drift: redis, ppm: 500001",
            "500001",
            "`ppm` is -500000 to 500000",
        ),
        ("drop: redis, for: 0ms", "0ms", "cannot be seen"),
    ] {
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
        taken("etcd", &format!("  - {{ after: 1s, do: {{ {step} }} }}"));
    }
    refuses_step("etcd", "refuse: a -> leader", "a ->", "write a name here");
    refuses_step(
        "etcd",
        "partition: [[leader], [etcd-1]]",
        "leader",
        "write a name here",
    );
    refuses_step(
        "etcd",
        "pause: leader",
        "leader",
        "give the entry a name and heal it",
    );
    taken(
        "etcd",
        "  - { name: still, after: 1s, do: { pause: leader } }\n  - { when: leader.paused, do: { heal: still } }",
    );
    let resumed = "  - { name: still, after: 1s, do: [{ pause: leader }, { heal: still }] }\n  - { when: leader.paused, do: { resume: leader } }";
    refuses("etcd", resumed, "leader } }", "another one leads by now");
}

#[test]
fn steps_on_a_node_that_was_just_stopped_are_refused() {
    for (timeline, at) in [
        (
            "  - { after: 1s, do: [{ kill: redis }, { skew: redis, by: 1s }] }",
            "redis, by",
        ),
        (
            "  - { after: 1s, do: [{ pause: a }, { wait: 1s }, { drift: a, ppm: 9000 }, { resume: a }] }",
            "a, ppm",
        ),
        (
            "  - { after: 1s, do: [{ kill: a }, { pause: a, for: 3s }] }",
            "a, for",
        ),
        (
            "  - { after: 1s, do: { pause: a, for: 3s } }\n  - { when: a.paused, do: { skew: a, by: 1s } }",
            "a, by",
        ),
        (
            "  - { after: 1s, do: [{ pause: a }, { skew: a, by: 1s }] }\n  - { when: b.done, do: { resume: a } }",
            "a, by",
        ),
    ] {
        refuses("redis", timeline, at, "needs it running");
    }
    for timeline in [
        "  - { after: 1s, do: [{ pause: a, for: 3s }, { skew: a, by: 1s }] }",
        "  - { after: 1s, do: [{ pause: a }, { resume: a }, { skew: a, by: 1s }] }",
        "  - { name: x, after: 1s, do: [{ freeze: a }, { heal: x }, { skew: a, by: 1s }] }",
        "  - { after: 1s, do: [{ kill: redis }, { restart: redis }, { skew: redis, by: 1s }] }",
        "  - { after: 1s, do: [{ pause: a }, { kill: a }] }\n  - { when: b.done, do: { resume: a } }",
        // Somebody else may have resumed it in the meantime.
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
    let none = Settings::default();
    Scenario::parse(
        Path::new("other.yml"),
        &text,
        &none,
        &Surroundings::Recorded,
    )
    .unwrap();
    assert!(!said("redis", timeline).is_empty());
}
