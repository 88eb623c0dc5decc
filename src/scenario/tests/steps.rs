use super::*;
use crate::scenario::action::Action;

#[test]
fn steps_follow_each_other_and_can_stand_together() {
    let timeline = "  - when: a.at_gate
    name: cut
    after: 500ms..2s
    repeat: 3
    do:
      - { isolate: { one_of: [redis-1, redis-2] }, for: 1s..3s }
      - { wait: 200ms..1s }
      - together:
          - { partition: [[a, redis-1], [b, redis-2, redis-3]], for: 2s, by: refuse }
          - { pause: a, for: 3s, longer_than: ttl }
  - { when: cut.began, name: other, do: [{ drop: b }, { heal: other }, { wait: 1s }] }";
    let scenario = taken("redlock", timeline);
    let entry = &scenario.timeline[0];
    assert_eq!(entry.name.as_deref(), Some("cut"));
    assert_eq!(entry.after.to_string(), "500ms..2s");
    assert_eq!(entry.repeat, Repeat::Times(3));
    let [
        Step::Inject { fault: choices, .. },
        Step::Wait { length: span },
        Step::Together { steps },
    ] = entry.steps.as_slice()
    else {
        panic!("{:?}", entry.steps);
    };
    assert_eq!(choices.len(), 2);
    assert_eq!(span.to_string(), "200ms..1s");
    assert_eq!(steps.len(), 2);
    let heal = &scenario.timeline[1].steps[1];
    assert!(
        matches!(heal, Step::Heal { entry } if entry.value == "other"),
        "{heal:?}"
    );
}

#[test]
fn without_an_event_it_counts_from_the_start() {
    let scenario = taken("redis", "  - { after: 2s, do: { drop: a, for: 1s } }");
    assert_eq!(scenario.timeline[0].when.to_string(), "scenario.started");
    let neither = "  - { do: { drop: a, for: 1s } }";
    let expected = "needs `when`, or `after` to count from the start";
    refuses("redis", neither, "{ do", expected);
}

#[test]
fn a_step_is_one_action_with_its_own_modifiers() {
    for (step, at, expected) in rows! {
        "pause: a, for: 3s, kill: b", "{ pause" => "`pause` and `kill` are two";
        "for: 3s", "{ for" => "a step needs an action; known: pause,";
        "isolat: a", "isolat" => "unknown action `isolat`; did you mean `isolate`?";
        "drop: a, percent: 9", "percent" => "`drop` has no `percent`; that belongs to loss";
        "kill: a, longer_than: ttl", "longer_than" => "that belongs to pause, freeze";
        "restart: redis, for: 2s", "for" => "`restart` has no `for`";
        "drop: a, fro: 9s", "fro" => "unknown key in `drop` `fro`; did you mean `for`?";
        "wait: 1s, for: 2s", "for" => "`wait` has no `for`";
        "wait: soon", "soon" => "`soon` is not a duration";
        "wait: 1s..soon", "1s..soon" => "are no bounds";
        "wait: 2s..1s", "2s..1s" => "ends before it begins";
        "together: [{ drop: a }]", "[" => "at least two steps";
        "heal: nobody", "nobody" => "unknown entry `nobody`; there are none here";
    } {
        refuses_step("redis", step, at, expected);
    }
    refuses("redis", "  - { after: 1s, do: [] }", "[]", "does nothing");
    let word = "  - { after: 1s, do: pause }";
    refuses("redis", word, "pause", "expected a step (a mapping)");
}

#[test]
fn what_is_repeated_has_to_end_first() {
    for (repeat, expected) in [
        ("0", "`repeat` is 1 to 1000"),
        ("1001", "`repeat` is 1 to 1000"),
        ("-1", "negative"),
        ("x", "`x` is not a whole number"),
    ] {
        let timeline = format!("  - {{ after: 1s, repeat: {repeat}, do: {{ drop: a, for: 1s }} }}");
        refuses("redis", &timeline, &format!("{repeat}, do"), expected);
    }
    let stands = "  - { after: 1s, repeat: 2, do: { drop: a } }";
    let expected = "would begin again while it stands";
    refuses("redis", stands, "{ drop", expected);
    for timeline in [
        "  - { after: 1s, repeat: 2, do: [{ pause: a }, { wait: 1s }, { resume: a }] }",
        "  - { after: 1s, name: x, repeat: 2, do: [{ drop: a }, { wait: 1s }, { heal: x }] }",
        "  - { after: 1s, repeat: 2, do: [{ kill: redis }, { wait: 1s }, { restart: redis }] }",
        "  - { after: 1s, repeat: 2, do: { drop: a, for: 1s } }",
    ] {
        taken("redis", timeline);
    }
}

#[test]
fn only_what_stands_can_be_healed() {
    let entry = "  - { name: again, after: 1s, do: { restart: redis } }\n  - { when: again.began, do: { heal: again } }";
    refuses("redis", entry, "again } }", "there is nothing to heal");
    let typo = "  - { name: cut, after: 1s, do: { drop: a } }\n  - { when: cut.began, do: { heal: cutt } }";
    refuses("redis", typo, "cutt", "did you mean `cut`?");
}

#[test]
fn every_action_and_every_modifier_can_be_written() {
    let text = include_str!("every_action.yml");
    let scenario = parse_as("every-action.yml", text).unwrap();
    assert_eq!(the_setup(scenario).timeline.len(), 7);
    for key in Action::all().flat_map(Action::keys) {
        assert!(text.contains(&format!("{key}: ")), "{key} is not in it");
    }
}
