use super::*;
use crate::load::{Arrivals, ContendPlan, KeyspacePlan, LoadPlan};
use crate::model::WaitPolicy;

const CONTEND: &str = "\
name: good
about: A hypothesis.
kind: load
topology: redis
lock: { backend: redis, ttl: 5s }
duration: 20s
contend: { contenders: [50, 200], rate: 200/s, work: 50ms }
expect: { violations: 0 }
cases:
  spin: { fence: on }
  queue: { fence: on, lock: { wait: queue }, contend: { contenders: 7, keys: 20k } }
";

const KEYSPACE: &str = "\
name: good
about: A hypothesis.
kind: load
topology: redis
lock: { backend: redis, ttl: 60s }
keyspace: { keys: 10M, scan: true }
cases:
  plain: {}
  counters: { keyspace: { counters: 5m, effort: 10, watch: 2m } }
";

fn contend(case: &Case) -> &ContendPlan {
    match &case.setup.load {
        Some(LoadPlan::Contend(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

fn keyspace(case: &Case) -> &KeyspacePlan {
    match &case.setup.load {
        Some(LoadPlan::Keyspace(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

/// Checks that the one mistake is reported once.
#[track_caller]
fn refused_alone(good: &str, from: &str, to: &str, expected: &str) {
    only_says(&said_of(good, from, to), expected);
}

#[test]
fn contenders_are_read_as_they_are_written_and_cases_lay_over_them() {
    let scenario = parse(CONTEND).unwrap();
    assert!(scenario.is_load());
    let plan = contend(&scenario.cases[0]);
    assert_eq!(plan.contenders, [50, 200]);
    let (per_second, backlog) = (Some(200.0), 10_000);
    let open = Arrivals::Open {
        per_second,
        backlog,
    };
    assert_eq!(plan.arrivals, open);
    assert_eq!((plan.clients, plan.keys), (12, 1));
    assert_eq!(plan.ttl, Duration::from_secs(5));
    assert_eq!(plan.duration, Duration::from_secs(20));
    let plan = contend(&scenario.cases[1]);
    assert_eq!((plan.contenders.as_slice(), plan.keys), (&[7][..], 20_000));
    assert_eq!(plan.lock.wait, WaitPolicy::Queue);
    let work = Span::exactly(Duration::from_millis(50));
    assert_eq!(plan.work, work, "as the scenario says");
}

#[test]
fn all_steps_fit_into_the_deadline_that_nobody_wrote() {
    let scenario = parse(CONTEND).unwrap();
    let minute = Duration::from_secs(60);
    let deadline = scenario.cases[0].setup.deadline;
    // The step, the last wait, and 40 s to write and release after the last work.
    let step = Duration::from_secs(20 + 10 + 40) + Duration::from_millis(50);
    assert_eq!(deadline, minute + 2 * step);
    let scenario = parse(&KEYSPACE.replace("ttl: 60s", "ttl: 120m")).unwrap();
    let counters = &scenario.cases[1].setup;
    assert!(counters.deadline >= minute * (60 + 120 + 2));
}

#[test]
fn only_where_keys_have_to_run_out_the_deadline_is_longer_than_the_ttl() {
    let long = CONTEND.replace("ttl: 5s", "ttl: 120m");
    assert!(parse(&long).is_ok(), "contenders release");
    let counters = "  counters: { keyspace: { counters: 5m, effort: 10, watch: 2m } }\n";
    let plain = KEYSPACE.replace(counters, "");
    let message = "keys that live 1m do not die within the deadline of 30s; give it a `watch`";
    refused_alone(&plain, "topology", "deadline: 30s\ntopology", message);
    let watched = plain.replace("scan: true", "watch: 10s");
    assert!(parse(&watched.replace("topology", "deadline: 30s\ntopology")).is_ok());
    let message = "a watch of 10s does not fit into the deadline of 5s";
    refused_alone(&watched, "topology", "deadline: 5s\ntopology", message);
}

#[test]
fn a_setting_replaces_the_contenders() {
    let scenario = parse_with(CONTEND, &["contend.contenders=[3]"]);
    for case in &scenario.unwrap().cases {
        assert_eq!(contend(case).contenders, [3]);
    }
}

#[test]
fn a_closed_model_has_no_rate() {
    let closed = CONTEND.replace("rate: 200/s", "model: closed");
    let scenario = parse(&closed).unwrap();
    assert_eq!(contend(&scenario.cases[0]).arrivals, Arrivals::Closed);
    for (to, expected) in rows! {
        "model: closed, rate: 200/s" => "good.yml:7:56: `rate` belongs to `model: open`";
        "model: closed, backlog: 5" => "`backlog` belongs to";
    } {
        refused_alone(CONTEND, "rate: 200/s", to, expected);
    }
}

#[test]
fn a_keyspace_needs_no_fence_and_no_expectation() {
    let scenario = parse(KEYSPACE).unwrap();
    let plan = keyspace(&scenario.cases[0]);
    assert_eq!(plan.keys, 10_000_000);
    assert_eq!((plan.ttl, plan.scan), (Duration::from_secs(60), true));
    assert_eq!((plan.counters, plan.effort, plan.watch), (None, None, None));
    assert_eq!(scenario.cases[0].expect, Expectations::default());
    assert!(!scenario.cases[0].setup.writes());
    assert!(parse(CONTEND).unwrap().cases[0].setup.writes());
    let plan = keyspace(&scenario.cases[1]);
    assert_eq!(plan.counters, Some(Duration::from_secs(300)));
    assert_eq!((plan.effort, plan.scan), (Some(10), true));
    assert_eq!(plan.watch, Some(Duration::from_secs(120)));
}

#[test]
fn a_wrong_kind_is_answered_with_the_nearest_and_nothing_else() {
    let nearest = "good.yml:3:7: unknown kind `laod`; did you mean `load`?";
    refused_alone(CONTEND, "kind: load", "kind: laod", nearest);
    refused_alone(GOOD, "topology", "kind: falt\ntopology", "`fault`?");
}

#[test]
fn a_load_has_no_workers_and_faults_have_no_load() {
    let with_workers = "kind: load\nworkers: { a: { key: k } }";
    let message = "good.yml:4:1: `workers`: a load has contenders of its own";
    refused_alone(CONTEND, "kind: load", with_workers, message);
    let timeline = "{ fence: on, timeline: [] }";
    refused_alone(CONTEND, "{ fence: on }", timeline, "`timeline`: a load");
    let missing = "good.yml:7:1: `contend`: that is a load; write `kind: load`";
    refused_alone(CONTEND, "kind: load\n", "\n", missing);
    let contend = "contend: { contenders: 5 }\ntimeline:";
    refused_alone(GOOD, "timeline:", contend, "write `kind: load`");
}

#[test]
fn a_load_is_exactly_one_of_two() {
    let both = "keyspace: { keys: 5 }\nexpect:";
    refused_alone(CONTEND, "expect:", both, "and not both");
    let neither = "contend: { contenders: [50, 200], rate: 200/s, work: 50ms }\n";
    let text = CONTEND.replace(", contend: { contenders: 7, keys: 20k }", "");
    refused_alone(&text, neither, "", "the scenario needs one of them");
}

#[test]
fn what_a_load_cannot_do_is_refused_at_its_place() {
    refused_alone(CONTEND, "duration: 20s\n", "", "give the scenario one");
    for (from, to, expected) in rows! {
        "200]", "x]" => "`x` is not a whole number";
        "200/s", "often" => "`often` is not a rate";
        "200/s", "-1" => "`-1` is not a rate";
        "200/s", "1e3" => "`1e3` is not a rate";
        "20k", "20q" => "`20q` is not a whole number; write such as";
        "20k", "99999999999999999M" => "is not a whole number";
        "contenders: 7", "contender: 7" => "did you mean `contenders`?";
        "ttl: 5s", "ttl: 0s" => "longer than 0ms";
        "duration: 20s", "deadline: 60s\nduration: 20s" => "`deadline` higher";
    } {
        refused_alone(CONTEND, from, to, expected);
    }
    let etcd = KEYSPACE.replace("topology: redis", "topology: etcd");
    let etcd = etcd.replace("backend: redis", "backend: etcd");
    let etcd = etcd.replace(", scan: true", "");
    let etcd = etcd.replace("counters: 5m, effort: 10, ", "");
    for (good, from, to, expected) in rows! {
        KEYSPACE, "effort: 10", "effort: 11" => "`effort` is 1 to 10";
        KEYSPACE, "keys: 10M, ", "" => "keyspace needs `keys`";
        KEYSPACE, "ttl: 60s", "ttl: 60s, wait: queue" => "leave `wait` out";
        KEYSPACE, "topology", "duration: 9s\ntopology" => "leave `duration` out";
        &etcd, "ttl: 60s", "ttl: 1s" => "whole seconds";
        &etcd, "10M", "10M, scan: true" => "6:30: only a Redis has this";
        &etcd, "watch", "effort: 3, watch" => "only a Redis has this";
        &etcd, "watch", "counters: 5m, watch" => "only a Redis has this";
    } {
        refused_alone(good, from, to, expected);
    }
    let redlock = KEYSPACE.replace("topology: redis", "topology: redlock");
    let message = "`redis` or `etcd`, not `redlock`";
    refused_alone(&redlock, "backend: redis", "backend: redlock", message);
}

#[test]
fn everything_that_is_wrong_with_a_load_is_said_at_once() {
    let text = CONTEND
        .replace("ttl: 5s", "ttl: soon")
        .replace("200]", "many]")
        .replace("work: 50ms", "work: hard")
        .replace("fence: on }", "fence: onn }");
    all_say(&text, &["`soon`", "`many`", "`hard`", "`onn`"]);
}

#[test]
fn the_plan_of_a_load_says_what_is_done() {
    let services = |_: &Setup| vec!["redis".to_owned(), "resource".to_owned()];
    let text = plan(&parse(CONTEND).unwrap(), services).to_string();
    let parts = [
        "for 20s, 50 contenders in 12 clients want one key: 200 arrivals a second",
        "7 contenders in 12 clients want 20000 keys",
        "works 50ms, writes and releases",
    ];
    has_all(&text, &parts);
    let text = plan(&parse(KEYSPACE).unwrap(), services).to_string();
    let parts = [
        "make 10000000 locks at redis, each of which lives 1m",
        "with an active-expire-effort of 10",
        "expects that it is done to its end",
    ];
    has_all(&text, &parts);
}

#[test]
fn what_a_run_kept_can_be_run_again() {
    assert!(parse_as("results/good/latest/scenario.yml", CONTEND).is_ok());
}
