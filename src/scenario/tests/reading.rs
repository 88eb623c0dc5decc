use super::*;

#[test]
fn a_good_scenario_is_read_as_it_is_written() {
    let scenario = parse(GOOD).unwrap();
    assert_eq!(scenario.cases[0].fence, Fence::Off);
    let setup = the_setup(scenario);
    let ttl = Duration::from_secs(2);
    assert_eq!(setup.workers[0].ttl, ttl);
    assert_eq!(setup.workers[0].gates, [Gate::BeforeWrite]);
    let Step::Inject { choices, .. } = &setup.timeline[0].steps[0] else {
        panic!("a pause")
    };
    assert_eq!(choices[0].longer_than(), Some(ttl));
}

#[test]
fn unknown_keys_get_the_nearest_right_one_with_its_place() {
    refused(
        "workers:",
        "wokers:",
        "good.yml:5:1: unknown key in the scenario `wokers`; did you mean `workers`?",
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
        "one step is one action: `resume` and `pause` are two",
    );
    refused(
        "{ resume: a }",
        "{ resume: a, for: 1s }",
        "`resume` has no `for`; that belongs to pause, freeze,",
    );
    refused(
        "workers:\n  a: { key: k, gate: before_write }\n  b: { key: k, start: a.paused }",
        "workers: [a, b]",
        "expected the workers by name",
    );
}

#[test]
fn a_crowd_is_refused_at_once() {
    let crowd: String = (0..900)
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
    let lines = parse(&text).unwrap_err().lines();
    let parts = [
        "needs `about`",
        "`abuot`",
        "`soon`",
        "`befor_write`",
        "entry `c`",
        "`offf`",
    ];
    assert_eq!(lines.len(), parts.len(), "{lines:#?}");
    for (line, part) in lines.iter().zip(parts) {
        assert!(line.contains(part), "`{part}` in {lines:#?}");
    }
}
