use super::*;
use crate::scenario::draft::{
    CaseFields, DraftContend, DraftKeyspace, DraftLock, HeadFields, WorkerFields,
};

#[test]
fn a_good_scenario_is_read_as_it_is_written() {
    let scenario = parse(GOOD).unwrap();
    assert_eq!(scenario.cases[0].fence, Fence::Off);
    let setup = the_setup(scenario);
    let ttl = Duration::from_secs(2);
    assert_eq!(setup.workers[0].ttl, ttl);
    assert_eq!(setup.workers[0].gates, [Gate::BeforeWrite]);
    let Step::Inject { fault: choices, .. } = &setup.timeline[0].steps[0] else {
        panic!("a pause")
    };
    assert_eq!(choices[0].longer_than(), Some(ttl));
}

#[test]
fn unknown_keys_get_the_nearest_right_one_with_its_place() {
    for (from, to, expected) in rows! {
        "workers:", "wokers:" => "good.yml:5:1: unknown key in the scenario `wokers`; did you mean `workers`?";
        "gate:", "gaet:" => "good.yml:6:16: unknown key in worker `a` `gaet`; did you mean `gate`?";
        "when: a.at", "wen: a.at" => "did you mean `when`?";
        "violations:", "violation:" => "did you mean `violations`?";
        "{ resume: a }", "{ resum: a }" => "did you mean `resume`?";
    } {
        refused(from, to, expected);
    }
}

#[test]
fn values_that_make_no_sense_are_refused() {
    for (from, to, expected) in rows! {
        "ttl: 2s", "ttl: 2" => "`2` is not a duration";
        "ttl: 2s", "ttl: -2s" => "`-2s` is not a duration";
        "ttl: 2s", "ttl: 0s" => "longer than 0ms";
        "ttl: 2s", "ttl: 2m" => "set `deadline` higher";
        "key: k, gate", "key: k, rounds: 0, gate" => "rounds are 1 to";
        "key: k, gate", "key: '', gate" => "a key is 1 to 256 bytes";
        "violations: 1..", "violations: many" => "`many` is not a count";
        "{ violations: 1.. }", "{}" => "a case that expects nothing proves nothing";
        "  a: {", "  A: {" => "`A` is not a name";
        "  a: {", "  redis: {" => "is a service of the topology";
        "name: good", "name: other" => "give both one name";
        "a.at_gate,", "a_at_gate," => "is not an event";
        "{ resume: a }", "{ resume: a, pause: a }" => "one step is one action: `resume` and `pause` are two";
        "{ resume: a }", "{ resume: a, for: 1s }" => "`resume` has no `for`; that belongs to pause, freeze,";
        "workers:\n  a: { key: k, gate: before_write }\n  b: { key: k, start: a.paused }", "workers: [a, b]"
            => "expected the workers by name";
    } {
        refused(from, to, expected);
    }
}

#[test]
fn a_crowd_is_refused_at_once() {
    let crowd = (0..900).map(|n| format!("  w{n}: {{ key: k }}\n"));
    let crowd = format!("workers:\n{}", crowd.collect::<String>());
    refused("workers:\n", &crowd, "at most 64 workers");
}

#[test]
fn everything_that_is_wrong_is_said_at_once_in_file_order() {
    let text = GOOD
        .replace("ttl: 2s", "ttl: soon")
        .replace("before_write", "befor_write")
        .replace("b.write_accepted", "c.write_accepted")
        .replace("fence: off", "fence: offf")
        .replace("about:", "abuot:");
    let parts = "needs `about`, `abuot`, `soon`, `befor_write`, entry `c`, `offf`";
    all_say(&text, &parts.split(", ").collect::<Vec<_>>());
}

#[test]
fn the_readme_has_a_row_for_every_field_in_the_same_words() {
    let readme = include_str!("../../../scenarios/README.md");
    let tables = [
        HeadFields::table(),
        CaseFields::table(),
        DraftLock::table(),
        WorkerFields::table(),
        DraftContend::table(),
        DraftKeyspace::table(),
    ];
    // The example shows the fields that every file begins with.
    let shown = ["name", "about", "cases"];
    let fields = tables.into_iter().flatten();
    for field in fields.filter(|field| !shown.contains(&field.name)) {
        let row = format!("| `{}` | {} | {} |", field.name, field.about, field.default);
        assert!(readme.contains(&row), "scenarios/README.md needs\n{row}");
    }
}
