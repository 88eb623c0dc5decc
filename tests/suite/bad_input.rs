//! What a person gets wrong: one clear message with its place, exit 64, and
//! nothing started. No Docker can be reached here, so nothing could be.

use crate::support::*;

const FILE: &str = "scenarios/pause-gt-ttl.yml";
const TOPOLOGY: &str = "compose/redis.yml";

#[test]
fn an_unknown_key_is_answered_with_the_nearest() {
    let home = Home::new();
    home.replace(FILE, "gate: before_write", "gates: before_write");
    let place = home.place(FILE, "gates:");
    refused(&home, SCENARIO).expect_said(&[
        &format!("{place}: unknown key in worker `a` `gates`"),
        "did you mean `gate`?",
    ]);
}

#[test]
fn a_trigger_of_nobody_is_answered_with_the_nearest() {
    let home = Home::new();
    home.replace(FILE, "when: b.write_accepted", "when: c.write_accepted");
    let place = home.place(FILE, "c.write_accepted");
    refused(&home, SCENARIO)
        .expect_said(&[&format!("{place}: unknown worker, service or entry `c`")]);
    let home = Home::new();
    home.replace(FILE, "b.write_accepted", "b.write_acepted");
    refused(&home, SCENARIO).expect_said(&["did you mean `write_accepted`?"]);
}

#[test]
fn a_pause_that_cannot_exceed_the_ttl_is_refused() {
    let home = Home::new();
    home.replace(FILE, "longer_than: ttl", "longer_than: ttl, for: 1s");
    home.replace(
        FILE,
        "  - { when: b.write_accepted, do: { resume: a } }",
        "",
    );
    let place = home.place(FILE, "1s");
    let message = format!("{place}: a pause of 1s cannot exceed the TTL of 2s");
    refused(&home, SCENARIO).expect_said(&[&message]);
}

#[test]
fn all_errors_of_a_file_are_told_at_once() {
    let home = Home::new();
    home.replace(FILE, "backend: redis", "backend: rediss");
    home.replace(FILE, "ttl: 2s", "ttl: 2 seconds");
    home.replace(FILE, "fence: off", "fence: of");
    home.replace(FILE, "accepted_writers: 2", "accepted_writers: two");
    let ended = refused(&home, SCENARIO).expect_said(&[
        "unknown backend `rediss`; did you mean `redis`?",
        "`2 seconds` is not a duration",
        "unknown fence (on or off) `of`",
        "`two` is not a count",
    ]);
    let lines: Vec<usize> = ended.stderr.lines().filter_map(line_number).collect();
    assert_eq!(lines.len(), 4, "{ended}");
    assert!(lines.is_sorted(), "{ended}");
}

#[test]
fn a_scenario_or_case_that_is_not_there_is_answered_with_the_nearest() {
    let home = Home::new();
    refused(&home, "pause-gt-tll").expect_said(&[
        "there is no scenario `pause-gt-tll`",
        "did you mean `pause-gt-ttl`?",
    ]);
    refused(&home, "zzz").expect_said(&["known: ", SCENARIO]);
    offline(&["--home", home.path(), "plan", "pause-gt-tll"]).expect_code(64);
    offline(&["--home", home.path(), "run", SCENARIO, "--case", "fencd"])
        .expect_code(64)
        .expect_said(&["has no case `fencd`", "did you mean `fenced`?"]);
}

#[test]
fn a_compose_key_outside_the_subset_is_refused_by_name() {
    let home = Home::new();
    home.replace(TOPOLOGY, "    stdin_open: true", "    privileged: true");
    let place = home.place(TOPOLOGY, "privileged");
    refused(&home, SCENARIO).expect_said(&[&format!("{place}: unknown key"), "`privileged`"]);
}

#[test]
fn a_port_beyond_loopback_is_refused() {
    let home = Home::new();
    home.replace(TOPOLOGY, "127.0.0.1::6379", "6379:6379");
    let place = home.place(TOPOLOGY, "\"6379:6379");
    let message = format!("{place}: `6379:6379`: ports are published on loopback only");
    refused(&home, SCENARIO).expect_said(&[&message]);
}

#[test]
fn a_topology_that_is_not_there_is_answered_with_the_nearest() {
    let home = Home::new();
    home.replace(FILE, "topology: redis", "topology: rediss");
    let place = home.place(FILE, "rediss");
    refused(&home, SCENARIO).expect_said(&[
        &format!("{place}: unknown topology"),
        "did you mean `redis`?",
    ]);
}

#[test]
fn a_key_that_stands_twice_is_refused() {
    let home = Home::new();
    home.replace(FILE, "topology: redis", "topology: redis\ntopology: again");
    let place = home.place(FILE, "topology: again");
    let message = format!("{place}: `topology` stands here a second time");
    refused(&home, SCENARIO).expect_said(&[&message]);
}

#[test]
fn what_is_no_yaml_is_refused_with_its_place() {
    let home = Home::new();
    home.write(FILE, "");
    refused(&home, SCENARIO).expect_said(&["pause-gt-ttl.yml:1:1: the file is empty"]);
    home.write(FILE, "# nothing but a comment\n");
    refused(&home, SCENARIO).expect_said(&["pause-gt-ttl.yml:1:1: the file is empty"]);
    home.write(FILE, "name: [\n");
    refused(&home, SCENARIO).expect_said(&["pause-gt-ttl.yml:2:1: "]);
    home.write(FILE, "just a word\n");
    refused(&home, SCENARIO).expect_said(&["pause-gt-ttl.yml:1:1: "]);
}

#[test]
fn what_is_no_text_is_refused_by_name() {
    let home = Home::new();
    home.write(FILE, b"name: \xff\xfe\n");
    refused(&home, SCENARIO).expect_said(&["scenarios/pause-gt-ttl.yml", "UTF-8"]);
    home.write(TOPOLOGY, b"services: \xff\n");
    refused(&home, SCENARIO).expect_said(&["compose/redis.yml", "UTF-8"]);
}

#[test]
fn a_folder_in_the_place_of_a_file_is_refused_by_name() {
    let home = Home::new();
    std::fs::create_dir(home.file("scenarios/folder.yml")).expect("a folder");
    let path = home.file("scenarios/folder.yml");
    let path = path.to_str().expect("a plain path");
    refused(&home, path).expect_said(&["folder.yml", "Is a directory"]);
    offline(&["--home", home.path(), "validate"])
        .expect_code(64)
        .expect_said(&["folder"]);
    let missing = home.file("scenarios/missing.yml");
    refused(&home, missing.to_str().expect("a plain path"))
        .expect_said(&["missing.yml", "No such file"]);
}

#[test]
fn a_home_without_scenarios_is_refused() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let empty = empty.path().to_str().expect("a plain path");
    offline(&["--home", empty, "list"])
        .expect_code(64)
        .expect_said(&["has neither scenarios/ nor compose/"]);
}

#[test]
fn wrong_flags_are_wrong_usage() {
    for arguments in [
        &[][..],
        &["rnu"],
        &["run"],
        &["run", SCENARIO, "--repeat", "0"],
        &["run", SCENARIO, "--repeat", "many"],
        &["run", SCENARIO, "--jobs", "0"],
        &["run", SCENARIO, "--jobs", "17"],
        &["run", SCENARIO, "--seed", "-1"],
        &["run", SCENARIO, "--all"],
        &["run", SCENARIO, "--mutant", "no-such-defect"],
        &["run", SCENARIO, "--nonsense"],
        &["worker", "--mutant", "no-such-defect"],
        &[
            "worker",
            "--backend",
            "redis",
            "--mutant",
            "lock-reuses-nonce",
        ],
        &["check"],
        &["plan"],
    ] {
        let ended = offline(arguments).expect_code(64);
        assert!(!ended.stderr.is_empty(), "{arguments:?} says why");
    }
    offline(&["imges"]).expect_said(&["'images'"]);
}

/// Refused by `run` and by `plan` with 64, each error with the place.
#[track_caller]
fn refused(home: &Home, scenario: &str) -> Ended {
    let ended = offline(&["--home", home.path(), "plan", scenario]).expect_code(64);
    let run = offline(&["--home", home.path(), "run", scenario]).expect_code(64);
    assert_eq!(run.stderr, ended.stderr);
    assert_eq!(run.stdout, "");
    assert!(!home.file("results").exists(), "nothing was started");
    run
}

/// The line in a complaint of the form `FILE:LINE:COLUMN: …`.
fn line_number(complaint: &str) -> Option<usize> {
    let (_, place) = complaint.split_once(".yml:")?;
    place.split(':').next()?.parse().ok()
}

/// A name is a container, a host and a folder.
#[test]
fn a_service_that_is_called_like_a_path_is_refused_where_it_stands() {
    let home = Home::new();
    let victim = home.file("victim");
    std::fs::create_dir(&victim).expect("a folder");
    home.write("victim/precious", "mine");
    let absolute = victim.display().to_string();
    for name in [
        "../../x",
        "../../../../../victim",
        &absolute,
        "a b",
        "Redis",
    ] {
        let more = format!(
            "services:\n  {name:?}: {{ image: fencepost/redis:7.0 }}\n  ..: {{ image: x }}\n"
        );
        let text =
            std::fs::read_to_string(project().join("compose/redis.yml")).expect("a topology");
        home.write("compose/evil.yml", text.replace("services:\n", &more));
        let file = home.file("compose/evil.yml");
        let first = format!(
            "{}: {name:?} is not a name; use 1 to 50",
            home.place("compose/evil.yml", &format!("{name:?}"))
        );
        let second = format!(
            "{}: \"..\" is not a name",
            home.place("compose/evil.yml", "..: {")
        );
        let evil = file.to_str().expect("a plain path");
        let results = fresh_folder("evil-names");
        let folder = results.to_str().expect("a plain path");
        for arguments in [
            &["validate", evil][..],
            &["run", SCENARIO, "--runtime", "local", "--results", folder],
            &["run", SCENARIO, "--runtime", "docker", "--results", folder],
        ] {
            let ended = offline(&[arguments, &["--home", home.path()]].concat());
            ended.expect_code(64).expect_said(&[&first, &second]);
        }
        assert_eq!(std::fs::read_dir(&results).expect("a folder").count(), 0);
    }
    assert!(victim.join("precious").is_file());
}
