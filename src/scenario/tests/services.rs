use super::*;

const COMPARED: &str = "\
name: good
about: A hypothesis.
lock: { ttl: 2s }
fence: on
services:
  redis: { topology: redis, lock: { backend: redis }, servers: [redis] }
  etcd: { topology: etcd, lock: { backend: etcd }, servers: [etcd-1, etcd-2] }
cases:
  load:
    kind: load
    duration: 4s
    contend: { contenders: 5, floor: 1s }
    expect: { violations: 0 }
  clock:
    workers: { a: { key: k, gate: before_write } }
    timeline:
      - { when: a.at_gate, do: { skew: servers, by: 1m } }
    expect: { violations: 0 }
";

#[test]
fn every_case_is_run_on_every_service() {
    let scenario = parse(COMPARED).unwrap();
    let names = scenario.cases.iter().map(|case| case.name.as_str());
    let names: Vec<&str> = names.collect();
    assert_eq!(
        names,
        ["redis-load", "redis-clock", "etcd-load", "etcd-clock"]
    );
    assert!(scenario.is_load());
    assert_eq!(scenario.services(), ["redis", "etcd"]);
    let etcd = &scenario.cases[3];
    assert!(etcd.is_called("etcd") && etcd.is_called("etcd-clock") && !etcd.is_called("redis"));
    assert_eq!(etcd.setup.lock.backend, Backend::Etcd);
    let targets = |case: &Case| -> Vec<String> {
        let faults = case.setup.faults().into_iter();
        faults.map(|fault| fault.target()).collect()
    };
    assert_eq!(targets(&scenario.cases[1]), ["redis"]);
    assert_eq!(targets(etcd), ["etcd-1", "etcd-2"], "at once");
    let run = scenario.cases[0].service_run().unwrap();
    assert_eq!((run.name.as_str(), run.ttl_ms), ("redis", 2_000));
}

#[test]
fn a_service_without_servers_leaves_their_cases_out() {
    let scenario = parse(&COMPARED.replace("[redis]", "[]")).unwrap();
    let names: Vec<&str> = scenario
        .cases
        .iter()
        .map(|case| case.name.as_str())
        .collect();
    assert_eq!(names, ["redis-load", "etcd-load", "etcd-clock"]);
    let unnamed = COMPARED.replace(", servers: [redis]", "");
    one_says(&said_about("good.yml", &unnamed), "`servers`");
}

#[test]
fn a_setting_goes_to_the_cases_that_have_its_field() {
    let settings = ["duration=1s", "contend.floor=300ms", "lock.ttl=3s"];
    let scenario = parse_with(COMPARED, &settings).unwrap();
    let [load, clock, ..] = &scenario.cases[..] else {
        panic!("{} cases", scenario.cases.len());
    };
    assert_eq!(load.setup.duration, Some(Duration::from_secs(1)));
    assert_eq!(clock.setup.duration, None);
    assert_eq!(clock.setup.ttl, Duration::from_secs(3));
}

#[test]
fn a_setting_of_a_field_that_no_case_has_is_refused() {
    let told = parse_with(COMPARED, &["keyspace.keys=5", "lock.ttl=3s"]);
    let told = told.unwrap_err().to_string();
    let expected = "--set keyspace.keys=5: no case has `keyspace`, so it would change nothing";
    assert!(told.contains(expected), "{told}");
}

#[test]
fn what_is_wrong_with_services_is_said_at_its_place() {
    for (from, to, expected) in rows! {
        "  redis: {", "  Redis: {" => "good.yml:6:3: `Redis` is not a name";
        "servers: [redis]", "sevrers: [redis]" => "did you mean `servers`?";
        "servers: [redis]", "servers: [radish]" => "unknown worker or service `radish`";
        "servers: [redis]", "servers: [redis, redis]" => "`redis` stands here twice";
    } {
        one_says(&said_of(COMPARED, from, to), expected);
    }
    let alike = COMPARED
        .replace("  etcd: {", "  redis-x: {")
        .replace("  clock:", "  x-load:");
    let told = said_about("good.yml", &alike);
    one_says(&told, "called `redis-x-load` together");
}

#[test]
fn services_count_as_often_as_they_are_played() {
    let many: String = (0..51)
        .map(|n| format!("  s{n}: {{ topology: redis }}\n"))
        .collect();
    let told = said_of(COMPARED, "services:\n", &format!("services:\n{many}"));
    one_says(&told, "at most 100 cases, and this one has 106");
}
