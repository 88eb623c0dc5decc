use super::*;
use crate::scenario::timeline::{Timeline, What};

/// Two cases, of which the second says almost everything differently.
const TWO: &str = "\
name: two
about: A hypothesis.
topology: redis
lock: { backend: redis, ttl: 2s }
workers:
  a: { key: k, gate: before_write }
  b: { key: k, start: a.paused }
timeline:
  - { when: a.at_gate, do: { pause: a, longer_than: ttl } }
  - { when: b.write_accepted, do: { resume: a } }
fence: on
expect: { violations: 0 }
cases:
  plain: {}
  other:
    topology: etcd
    lock: { backend: etcd, ttl: 5s }
    deadline: 90s
    fence: off
    workers:
      a: { renew: true, gate: [] }
      c: { key: other, start: a.acquired }
      b: { start: a.acquired }
    timeline: []
    expect: { violations: 1.. }
";

fn two() -> Scenario {
    parse_as("two.yml", TWO).unwrap()
}

#[test]
fn a_case_is_its_scenario_with_its_own_fields_laid_over_it() {
    let [plain, other] = two().cases.try_into().unwrap();
    assert_eq!((plain.fence, other.fence), (Fence::On, Fence::Off));
    assert_eq!(plain.setup.timeline.len(), 2);
    assert!(other.setup.timeline.is_empty());
    assert_eq!(other.setup.topology, "etcd");
    assert_eq!(other.setup.deadline, Duration::from_secs(90));
    let names: Vec<&str> = other
        .setup
        .workers
        .iter()
        .map(|w| w.name.as_str())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    let a = &other.setup.workers[0];
    assert_eq!((a.key.as_str(), a.renew, a.gates.len()), ("k", true, 0));
    assert_eq!(a.ttl, Duration::from_secs(5));
    assert!(!plain.setup.workers[0].renew);
}

#[track_caller]
fn said_of_two(from: &str, to: &str) -> Vec<String> {
    assert!(TWO.contains(from), "`{from}`");
    match parse_as("two.yml", &TWO.replacen(from, to, 1)) {
        Ok(_) => panic!("taken: {to}"),
        Err(error) => error.lines(),
    }
}

#[test]
fn what_cases_share_is_complained_about_once() {
    assert_eq!(
        said_of_two("ttl: 2s", "ttl: 2"),
        [
            "two.yml:4:30: `2` is not a duration; write a whole number and ms, s or m, such as 500ms or 2s"
        ]
    );
    let lines = said_of_two("topology: redis\n", "");
    assert_eq!(lines, ["two.yml:1:1: the scenario needs `topology`"]);
}

#[test]
fn what_only_a_case_says_is_refused_at_its_place() {
    let lines = said_of_two("fence: off", "fence_: off");
    assert_eq!(
        lines,
        ["two.yml:19:5: unknown key in case `other` `fence_`; did you mean `fence`?"]
    );
    let lines = said_of_two("topology: etcd", "topology: etc");
    assert!(
        lines[0].starts_with("two.yml:16:15: unknown topology `etc`"),
        "{lines:?}"
    );
    let lines = said_of_two("topology: etcd", "topology: redis");
    let message = "the topology `redis` has one Redis, and `etcd` needs an etcd cluster";
    assert!(lines.iter().any(|line| line.contains(message)), "{lines:?}");
    let lines = said_of_two("    timeline: []\n", "");
    assert!(
        lines
            .iter()
            .any(|line| line.contains("worker `a` has no gate")),
        "{lines:?}"
    );
}

#[test]
fn a_case_needs_a_fence_and_something_to_expect() {
    let without = TWO
        .replace("fence: on\n", "")
        .replace("expect: { violations: 0 }\n", "");
    let error = parse_as("two.yml", &without).unwrap_err();
    let expected = [
        "two.yml:12:10: case `plain` needs `expect`",
        "two.yml:12:10: case `plain` needs `fence`",
    ];
    assert_eq!(error.lines(), expected);
}

fn with(settings: &[&str]) -> Result<Scenario, InvalidFile> {
    let settings = settings.iter().map(|text| text.parse().unwrap());
    let settings = Settings(settings.collect());
    Scenario::parse(Path::new("two.yml"), TWO, &settings, &around())
}

#[test]
fn a_setting_wins_over_file_and_case() {
    let scenario = with(&["lock.ttl=7s", "workers.a.work=300ms"]).unwrap();
    for case in &scenario.cases {
        assert_eq!(case.setup.workers[0].ttl, Duration::from_secs(7));
        assert_eq!(case.setup.workers[0].work, Duration::from_millis(300));
    }
    assert_eq!(
        scenario.settings.words(),
        ["lock.ttl=7s", "workers.a.work=300ms"]
    );
}

#[test]
fn a_wrong_setting_is_named() {
    let error = with(&["deadline=5m", "lock.ttl=7"]).unwrap_err();
    let expected = "two.yml: --set lock.ttl=7: `7` is not a duration; \
                    write a whole number and ms, s or m, such as 500ms or 2s";
    assert_eq!(error.lines(), [expected]);
    for (text, expected) in [
        ("ttl", "write FIELD=VALUE"),
        ("name=x", "no case has a field `name`"),
        ("lok.ttl=2s", "did you mean `lock`?"),
        ("lock..ttl=2s", "between two dots"),
    ] {
        let error = text.parse::<Setting>().unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_worker_may_have_a_lock_of_its_own() {
    let text = TWO.replace("b: { key: k,", "b: { lock: { ttl: 9s }, key: k,");
    let scenario = parse_as("two.yml", &text).unwrap();
    let workers = &scenario.cases[0].setup.workers;
    let ttls = [workers[0].ttl.as_secs(), workers[1].ttl.as_secs()];
    assert_eq!(ttls, [2, 9]);
    let wrong = said_of_two("b: { key: k,", "b: { lock: { backend: etcd }, key: k,");
    assert!(wrong[0].contains("needs an etcd cluster"), "{wrong:?}");
}

#[test]
fn copies_are_workers_of_their_own_and_one_target() {
    let text = GOOD
        .replace(
            "  b: {",
            "  w: { copies: 5, keys: 2, key: account }\n  b: {",
        )
        .replace("{ pause: a,", "{ pause: a, for: 3s,")
        .replace(
            "do: { resume: a }",
            "do: [{ drop: w, for: 1s }, { partition: [[w], [redis]] }]",
        );
    let setup = the_setup(parse(&text).unwrap());
    let copies: Vec<String> = setup
        .workers
        .iter()
        .map(|w| format!("{} {}", w.name, w.key))
        .collect();
    assert_eq!(
        copies[1..6],
        [
            "w-1 account-1",
            "w-2 account-2",
            "w-3 account-1",
            "w-4 account-2",
            "w-5 account-1"
        ]
    );
    let Step::Inject { choices, .. } = &setup.timeline[1].steps[0] else {
        panic!("a drop")
    };
    assert_eq!(choices.len(), 5);
    refused(
        "  b: {",
        "  w: { keys: 2, key: x }\n  b: {",
        "give the worker `copies`",
    );
}

#[test]
fn what_repeats_throughout_fills_the_duration_and_no_more() {
    let text = GOOD.replace("cases:", "duration: 30s\ncases:").replace(
        "  - { when: a.at_gate",
        "  - { after: 1s, repeat: throughout, do: [{ drop: { one_of: [a, b] }, for: 1s..3s }, { wait: 500ms }] }\n  - { when: a.at_gate",
    );
    let setup = the_setup(parse(&text).unwrap());
    assert_eq!(setup.deadline, Duration::from_secs(90));
    assert_eq!(setup.workers[0].rounds, None);
    let due = Timeline::new(&setup, 1).event("scenario", "started");
    let What::Act { rounds, until, .. } = &due[0].what else {
        panic!("an entry")
    };
    assert_eq!(*until, Some(Duration::from_secs(30)));
    assert!((8..=20).contains(&rounds.len()), "{}", rounds.len());
    let refused = |text: &str, expected: &str| {
        let error = parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&text.replace("duration: 30s\n", ""), "give it one");
    let still = text.replace(", for: 1s..3s }, { wait: 500ms }", " }, { heal: x }");
    refused(&still, "have to take time");
}

#[test]
fn a_step_may_wait_for_an_event() {
    let step = first_step("redis", "wait: a.acquired#2");
    let event = Trigger::parse("a.acquired#2").unwrap();
    assert_eq!(step, Step::Await { event });
    refuses_step(
        "redis",
        "wait: a.acquird",
        "a.acquird",
        "did you mean `acquired`?",
    );
    refuses_step("redis", "wait: c.acquired", "c.acquired", "unknown worker");
}

#[test]
fn an_image_of_workers_has_to_be_there() {
    refused(
        "workers:",
        "worker: { image: nowhere/at-all }\nworkers:",
        "good.yml:5:18: there is no nowhere/at-all/Dockerfile",
    );
    let named = GOOD.replace("workers:", "worker: { image: 'mine:1' }\nworkers:");
    let setup = the_setup(parse(&named).unwrap());
    assert_eq!(setup.worker_image.as_deref(), Some("mine:1"));
}

#[test]
fn what_only_nested_holds_bring_about_needs_them() {
    refused(
        "start: a.paused",
        "start: a.reentered",
        "give it `nested: 2`",
    );
    refused(
        "gate: before_write",
        "gate: before_leave",
        "nobody comes to the gate `before_leave`",
    );
    let nested = GOOD
        .replace(
            "key: k, gate: before_write",
            "key: k, nested: 3, gate: [before_write, before_leave]",
        )
        .replace("start: a.paused", "start: a.left#2");
    let setup = the_setup(parse(&nested).unwrap());
    assert_eq!(setup.workers[0].nested, 3);
    refused(
        "start: a.paused",
        "start: a.left#3",
        "`a.left#3` never comes",
    );
}

#[test]
fn a_wait_for_an_event_takes_as_long_as_it_takes() {
    let long = "[{ pause: a, longer_than: ttl }, { wait: b.acquired }, { resume: a }]";
    taken("redis", &format!("  - {{ after: 1s, do: {long} }}"));
    let meanwhile =
        "  - { after: 1s, do: [{ pause: a }, { wait: a.resumed }, { skew: a, by: 1s }] }
  - { when: b.acquired, do: { resume: a } }";
    taken("redis", meanwhile);
    refuses_step("redis", "wait: 1.5s", "1.5s", "`1.5s` is not a duration");
}

#[test]
fn a_wait_for_what_it_holds_up_never_ends() {
    let gate = "  - { when: a.at_gate, do: { wait: a.write_accepted } }";
    refuses("redis", gate, "a.write_accepted", "stands at its gate");
    let itself = "  - { name: cut, after: 1s, do: [{ drop: b, for: 1s }, { wait: cut.ended }] }";
    refuses("redis", itself, "cut.ended", "it waits for this step");
}

#[test]
fn events_that_come_again_and_again_can_be_counted_on() {
    let text = GOOD.replace("cases:", "duration: 30s\ncases:").replace(
        "timeline:\n",
        "timeline:\n  - { after: 1s, repeat: throughout, do: [{ restart: redis }, { wait: 1s }] }\n  - { after: 2s, do: { restart: redis } }\n  - { when: redis.restarted#3, do: { drop: b } }\n",
    );
    parse(&text).unwrap();
}

#[test]
fn what_repeats_throughout_fits_into_the_duration() {
    let text = |entry: &str, duration: &str| {
        let duration = format!("duration: {duration}\ncases:");
        let entry = format!(
            "timeline:\n  - {{ {entry}, repeat: throughout, do: {{ drop: b, for: 1s }} }}\n"
        );
        GOOD.replace("cases:", &duration)
            .replace("timeline:\n", &entry)
    };
    let said = |entry: &str, duration: &str| parse(&text(entry, duration)).unwrap_err().to_string();
    assert!(said("after: 1s..30s", "30s").contains("the duration of 30s is over by then"));
    assert!(said("when: a.acquired", "30s").contains("leave `when` out"));
    assert!(said("after: 1s", "721m").contains("at most 720m"));
    parse(&text("after: 1s..29s", "30s")).unwrap();
    let short = text("after: 1s", "57s").replace("cases:", "deadline: 60s\ncases:");
    assert!(
        parse(&short)
            .unwrap_err()
            .to_string()
            .contains("62s does not fit")
    );
}

#[test]
fn copies_take_nobodys_name() {
    let message = "another worker is called `w-1` already";
    refused(
        "  b: {",
        "  w: { copies: 2, key: x }\n  w-1: { key: k }\n  b: {",
        message,
    );
    refused(
        "  b: {",
        "  redis: { copies: 2, key: x }\n  b: {",
        "`redis` is a service",
    );
}

#[test]
fn parts_of_a_setting_are_told_apart() {
    let timeline = "timeline=[{when: a.at_gate, do: {pause: a, longer_than: ttl}}, {when: b.write_accepted, do: {resume: a}}]";
    let settings = Settings(vec![timeline.parse().unwrap()]);
    Scenario::parse(Path::new("good.yml"), GOOD, &settings, &around()).unwrap();
}

#[test]
fn an_order_has_every_event_once() {
    let twice = "expect: { order: [a.acquired, b.acquired, a.acquired] }";
    refused(
        "expect: { violations: 1.. }",
        twice,
        "`a.acquired` stands here twice",
    );
}

#[test]
fn how_much_a_scenario_says_is_bounded() {
    let complaints = |text: &str| parse_as("two.yml", text).unwrap_err().lines().join("\n");
    let cases: String = (0..51).map(|n| format!("  c{n}: {{}}\n")).collect();
    let told = complaints(&TWO.replace("  plain: {}\n", &cases));
    assert!(
        told.contains("at most 50 cases, and this one has 52"),
        "{told}"
    );

    let entry = "  - { when: a.at_gate, do: { pause: a, longer_than: ttl } }\n";
    let told = complaints(&TWO.replace(entry, &entry.repeat(500)));
    assert!(told.contains("at most 200 entries and steps"), "{told}");
    let steps = "{ pause: a, for: 3s }, ".repeat(201);
    let long = format!("  - {{ when: a.at_gate, do: [{steps}] }}\n{entry}");
    let told = complaints(&TWO.replace(entry, &long));
    assert!(told.contains("at most 200 entries and steps"), "{told}");
}
