use super::*;
use crate::scenario::timeline::{Timeline, What};

/// Two cases, of which the second overrides almost everything.
const TWO: &str = "\
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

#[test]
fn a_case_is_its_scenario_with_its_own_fields_laid_over_it() {
    let [plain, other] = parse(TWO).unwrap().cases.try_into().unwrap();
    assert_eq!((plain.fence, other.fence), (Fence::On, Fence::Off));
    assert_eq!(plain.setup.timeline.len(), 2);
    assert!(other.setup.timeline.is_empty());
    assert_eq!(other.setup.topology, "etcd");
    assert_eq!(other.setup.deadline, Duration::from_secs(90));
    let workers = &other.setup.workers;
    let names: Vec<&str> = workers.iter().map(|w| w.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    let a = &workers[0];
    assert_eq!((a.key.as_str(), a.gates.len()), ("k", 0));
    assert!(a.fields.renew());
    assert_eq!(a.ttl, Duration::from_secs(5));
    assert!(!plain.setup.workers[0].fields.renew());
}

#[test]
fn what_cases_share_is_complained_about_once() {
    for (from, to, expected) in rows! {
        "ttl: 2s", "ttl: 2" => "good.yml:4:30: `2` is not a duration; write a whole number and ms, s or m, such as 500ms or 2s";
        "topology: redis\n", "" => "good.yml:1:1: the scenario needs `topology`";
    } {
        assert_eq!(said_of(TWO, from, to), [expected]);
    }
}

#[test]
fn what_only_a_case_says_is_refused_at_its_place() {
    let expected = "good.yml:19:5: unknown key in case `other` `fence_`; did you mean `fence`?";
    assert_eq!(said_of(TWO, "fence: off", "fence_: off"), [expected]);
    for (from, to, expected) in rows! {
        "topology: etcd", "topology: etc" => "good.yml:16:15: unknown topology `etc`";
        "topology: etcd", "topology: redis" => "the topology `redis` has one Redis, and `etcd` needs an etcd cluster";
        "    timeline: []\n", "" => "worker `a` has no gate";
    } {
        one_says(&said_of(TWO, from, to), expected);
    }
}

#[test]
fn a_case_needs_a_fence_and_something_to_expect() {
    let without = TWO
        .replace("fence: on\n", "")
        .replace("expect: { violations: 0 }\n", "");
    let expected = [
        "good.yml:12:10: case `plain` needs `expect`",
        "good.yml:12:10: case `plain` needs `fence`",
    ];
    assert_eq!(said_about("good.yml", &without), expected);
}

#[test]
fn a_setting_wins_over_file_and_case() {
    let settings = ["lock.ttl=7s", "workers.a.work=300ms"];
    let scenario = parse_with(TWO, &settings).unwrap();
    for case in &scenario.cases {
        let worker = &case.setup.workers[0];
        assert_eq!(worker.ttl, Duration::from_secs(7));
        assert_eq!(worker.fields.work(), Duration::from_millis(300));
    }
    assert_eq!(scenario.settings.words(), settings);
}

#[test]
fn a_wrong_setting_is_named() {
    let error = parse_with(TWO, &["deadline=5m", "lock.ttl=7"]).unwrap_err();
    let expected = "good.yml: --set lock.ttl=7: `7` is not a duration; \
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
    let scenario = parse(&text).unwrap();
    let workers = &scenario.cases[0].setup.workers;
    let ttls = [workers[0].ttl.as_secs(), workers[1].ttl.as_secs()];
    assert_eq!(ttls, [2, 9]);
    let wrong = said_of(TWO, "b: { key: k,", "b: { lock: { backend: etcd }, key: k,");
    assert!(wrong[0].contains("needs an etcd cluster"), "{wrong:?}");
}

#[test]
fn copies_are_workers_of_their_own_and_one_target() {
    let copies = "  w: { copies: 5, keys: 2, key: account }\n  b: {";
    let faults = "do: [{ drop: w, for: 1s }, { partition: [[w], [redis]] }]";
    let text = GOOD.replace("  b: {", copies);
    let text = text.replace("{ pause: a,", "{ pause: a, for: 3s,");
    let setup = the_setup(parse(&text.replace("do: { resume: a }", faults)).unwrap());
    let copies = setup.workers[1..6].iter();
    let copies: Vec<String> = copies.map(|w| format!("{} {}", w.name, w.key)).collect();
    let expected = "w-1 account-1, w-2 account-2, w-3 account-1, w-4 account-2, w-5 account-1";
    assert_eq!(copies.join(", "), expected);
    let Step::Inject { fault: choices, .. } = &setup.timeline[1].steps[0] else {
        panic!("a drop")
    };
    assert_eq!(choices.len(), 5);
    let keys = "  w: { keys: 2, key: x }\n  b: {";
    refused("  b: {", keys, "give the worker `copies`");
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
    one_says(&said_of(&text, "duration: 30s\n", ""), "give it one");
    let still = said_of(&text, ", for: 1s..3s }, { wait: 500ms }", " }, { heal: x }");
    one_says(&still, "have to take time");
}

#[test]
fn a_step_may_wait_for_an_event() {
    let step = first_step("redis", "wait: a.acquired#2");
    let Step::Await { event } = step else {
        panic!("{step:?}");
    };
    assert_eq!(event.value.to_string(), "a.acquired#2");
    for (step, at, expected) in rows! {
        "wait: a.acquird", "a.acquird" => "did you mean `acquired`?";
        "wait: c.acquired", "c.acquired" => "unknown worker";
    } {
        refuses_step("redis", step, at, expected);
    }
}

#[test]
fn an_image_of_workers_has_to_be_there() {
    let nowhere = "worker: { image: nowhere/at-all }\nworkers:";
    let expected = "good.yml:5:18: there is no nowhere/at-all/Dockerfile";
    refused("workers:", nowhere, expected);
    let named = GOOD.replace("workers:", "worker: { image: 'mine:1' }\nworkers:");
    let setup = the_setup(parse(&named).unwrap());
    assert_eq!(setup.worker.image.as_deref(), Some("mine:1"));
}

#[test]
fn a_worker_is_found_from_its_file_and_has_a_command_and_variables() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(whole.join("scenarios")).unwrap();
    std::fs::create_dir(whole.join("lock")).unwrap();
    std::fs::write(whole.join("lock/Dockerfile"), "FROM scratch").unwrap();
    let file = whole.join("scenarios/good.yml");
    let parse = |worker: &str, settings: &[&str]| {
        let settings = settings.iter().map(|text| text.parse().unwrap());
        let text = GOOD.replace("workers:", &format!("worker: {worker}\nworkers:"));
        Scenario::parse(&file, &text, &Settings(settings.collect()), &around())
    };
    let lock = whole.join("lock").display().to_string();
    for image in ["../lock", &lock] {
        let env = "env: { RETRIES: 3, NAME: x }, command: [run, -v]";
        let scenario = parse(&format!("{{ image: {image}, {env} }}"), &[]).unwrap();
        let worker = the_setup(scenario).worker;
        assert_eq!(worker.image.as_deref(), Some(lock.as_str()));
        assert_eq!(worker.command, ["run", "-v"]);
        assert_eq!(worker.env["RETRIES"], "3");
        assert!(!worker.is_ours());
    }
    // An override is written by somebody who is in the current folder.
    let set = ["worker.image=./examples/redis-py-worker"];
    let scenario = parse("{ env: { A: b } }", &set).unwrap();
    let here = std::path::absolute("examples/redis-py-worker").unwrap();
    let image = the_setup(scenario).worker.image.unwrap();
    assert_eq!(Path::new(&image), here.canonicalize().unwrap());
    let ours = the_setup(parse("{ env: { A: b } }", &[]).unwrap()).worker;
    assert!(ours.is_ours() && ours.env["A"] == "b");
    for (worker, complaint) in rows! {
        "{}" => "`worker` says nothing; give it `image`, `command` or `env`";
        "{ image: ../nowhere }" => "there is no Dockerfile in";
        "{ command: [] }" => "a command has at least one word";
        "{ env: { FENCEPOST_KEY: x } }" => "`FENCEPOST_KEY` is a setting of the task";
        "{ env: { 'a b': x } }" => "`a b` is no name of a variable";
        "{ imag: x }" => "did you mean `image`?";
    } {
        let error = parse(worker, &[]).unwrap_err().to_string();
        assert!(error.contains(complaint), "{worker}: {error}");
    }
}

#[test]
fn what_only_nested_holds_bring_about_needs_them() {
    for (from, to, expected) in rows! {
        "start: a.paused", "start: a.reentered" => "give it `nested: 2`";
        "gate: before_write", "gate: before_leave" => "nobody comes to the gate `before_leave`";
        "start: a.paused", "start: a.left#3" => "`a.left#3` never comes";
    } {
        refused(from, to, expected);
    }
    let gates = "nested: 3, gate: [before_write, before_leave]";
    let nested = GOOD.replace("gate: before_write", gates);
    let nested = nested.replace("start: a.paused", "start: a.left#2");
    let setup = the_setup(parse(&nested).unwrap());
    assert_eq!(setup.workers[0].fields.nested(), 3);
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
    for (entry, duration, expected) in rows! {
        "after: 1s..30s", "30s" => "the duration of 30s is over by then";
        "when: a.acquired", "30s" => "leave `when` out";
        "after: 1s", "721m" => "at most 720m";
    } {
        one_says(&said_about("good.yml", &text(entry, duration)), expected);
    }
    parse(&text("after: 1s..29s", "30s")).unwrap();
    let short = said_of(&text("after: 1s", "57s"), "cases:", "deadline: 60s\ncases:");
    one_says(&short, "62s does not fit");
}

#[test]
fn copies_take_nobodys_name() {
    for (workers, expected) in rows! {
        "  w: { copies: 2, key: x }\n  w-1: { key: k }\n  b: {" => "another worker is called `w-1` already";
        "  redis: { copies: 2, key: x }\n  b: {" => "`redis` is a service";
    } {
        refused("  b: {", workers, expected);
    }
}

#[test]
fn parts_of_a_setting_are_told_apart() {
    let timeline = "timeline=[{when: a.at_gate, do: {pause: a, longer_than: ttl}}, {when: b.write_accepted, do: {resume: a}}]";
    parse_with(GOOD, &[timeline]).unwrap();
}

#[test]
fn an_order_has_every_event_once() {
    let twice = "{ order: [a.acquired, b.acquired, a.acquired] }";
    let expected = "`a.acquired` stands here twice";
    refused("{ violations: 1.. }", twice, expected);
}

#[test]
fn how_much_a_scenario_says_is_bounded() {
    let cases: String = (0..101).map(|n| format!("  c{n}: {{}}\n")).collect();
    let told = said_of(TWO, "  plain: {}\n", &cases);
    one_says(&told, "at most 100 cases, and this one has 102");

    let entry = "  - { when: a.at_gate, do: { pause: a, longer_than: ttl } }\n";
    let steps = "{ pause: a, for: 3s }, ".repeat(201);
    let long = format!("  - {{ when: a.at_gate, do: [{steps}] }}\n{entry}");
    for many in [entry.repeat(500), long] {
        one_says(&said_of(TWO, entry, &many), "at most 200 entries and steps");
    }
}
