//! `nightly`: everything is run and compared, and whatever happens, what came of it is
//! written.

use crate::support::*;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// Two workers after each other, and nothing goes wrong.
const CALM: &str = "\
name: calm
about: A test.
topology: redis
lock: { backend: redis, ttl: 30s }
workers:
  a: { key: k }
  b: { key: k, start: a.done }
cases:
  unfenced: { fence: off, expect: { violations: 0, accepted_writes: 2 } }
  fenced: { fence: on, expect: { violations: 0, accepted_writes: 2 } }
";

/// A home with two scenarios, and a folder for the results.
struct Night {
    home: Home,
    results: PathBuf,
    /// On Docker where it is not there.
    local: Option<Local>,
}

impl Night {
    fn new(test: &str) -> Night {
        let home = Home::with_only(&[SCENARIO]);
        home.write("scenarios/calm.yml", CALM);
        let results = fresh_folder(&format!("nightly-{test}"));
        Night {
            home,
            results,
            local: None,
        }
    }

    fn on_processes(test: &str) -> Night {
        Night {
            local: Some(local()),
            ..Night::new(test)
        }
    }

    fn arguments<'a>(&'a self, command: &[&'a str]) -> Vec<&'a str> {
        let results = self.results.to_str().expect("a plain path");
        let (name, rest) = command.split_first().expect("a command");
        let shared = ["--home", self.home.path(), name, "--results", results];
        [&shared[..], rest].concat()
    }

    fn run(&self, command: &[&str]) -> Ended {
        match &self.local {
            Some(local) => local.start(&self.arguments(command)).wait(),
            None => fencepost(&self.arguments(command)),
        }
    }

    fn file(&self, name: &str) -> String {
        let path = self.results.join(name);
        let text = fs::read_to_string(&path);
        text.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn junit(&self) -> Value {
        junit(&self.results.join("junit.xml"))
    }

    /// A baseline that nobody could judge, and one whose scenario is gone: both have to be
    /// looked at, and neither is a changed verdict.
    fn is_in_doubt_about_the_baseline(&self) {
        let path = self.results.join("baseline/calm/result.json");
        let reviewed = self.file("baseline/calm/result.json");
        let mut unsure = json(&path);
        unsure["stable"]["cases"]["fenced"]["verdict"] = json!("inconclusive");
        fs::write(&path, unsure.to_string()).expect("a file");
        let gone = self.results.join("baseline/gone");
        fs::create_dir(&gone).expect("a folder");
        fs::write(gone.join("result.json"), &reviewed).expect("a file");
        let ended = self.run(&["nightly"]).expect_code(2);
        ended.expect_said(&[
            "against the baseline: 1 in doubt, 1 with the same verdicts, 1 not comparable",
            "gone: not comparable: it has a baseline, and no scenario is called so any more",
        ]);
        let heading = "## fencepost: as expected, but 1 cannot be compared with the baseline\n";
        let summary = self.file("summary.md");
        assert!(summary.starts_with(heading), "{summary}");
        fs::remove_dir_all(gone).expect("it was there");
        fs::write(&path, reviewed).expect("a file");
    }

    /// The verdict of each scenario on the overview.
    fn index(&self) -> Vec<(String, String)> {
        let page = self.file("index.html");
        let rows = page.split("<tr data-scenario=\"").skip(1);
        let rows = rows.map(|row| {
            let mut parts = row.split('"');
            let name = parts.next().expect("a name").to_owned();
            (name, parts.nth(1).expect("a verdict").to_owned())
        });
        rows.collect()
    }
}

fn pair(scenario: &str, verdict: &str) -> (String, String) {
    (scenario.to_owned(), verdict.to_owned())
}

#[track_caller]
fn expect(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
#[cfg(debug_assertions)]
fn a_night_is_compared_with_what_was_blessed() {
    let night = Night::on_processes("compared");
    let ended = night.run(&["nightly"]).expect_code(0);
    ended.expect_said(&["against the baseline: 2 without a baseline", "written: "]);
    let good = [pair("calm", "as_expected"), pair(SCENARIO, "as_expected")];
    assert_eq!(night.index(), good);
    expect(
        &night.file("summary.md"),
        &[
            "## fencepost: as expected",
            "2 of 2 scenarios as expected.",
            "| calm | ✓ as expected | 2 of 2 |",
        ],
    );
    let told = night.junit();
    assert_eq!(all(&told, "testcase").len(), 4);
    assert_eq!(all(&told, "failure").len() + all(&told, "error").len(), 0);
    for scenario in ["calm", SCENARIO] {
        let own = junit(&night.results.join(scenario).join("latest/junit.xml"));
        assert_eq!(all(&own, "testcase").len(), 2);
        let took = &all(&own, "testcase")[0]["attributes"]["time"];
        let took: f64 = took
            .as_str()
            .and_then(|took| took.parse().ok())
            .expect("a time");
        assert!(took > 0.0);
    }

    night
        .run(&["bless"])
        .expect_code(0)
        .expect_said(&["calm: ", "(the first baseline)"]);
    night.is_in_doubt_about_the_baseline();
    is_worse_with_a_defect(&night);
}

/// The same night with a resource that does not look at tokens.
#[cfg(debug_assertions)]
fn is_worse_with_a_defect(night: &Night) {
    let defect = ["--mutant", "resource-ignores-token"];
    let worse = [&["nightly", "--format", "json"], &defect[..]].concat();
    let told: Value = serde_json::from_str(&night.run(&worse).expect_code(1).stdout).expect("JSON");
    assert_eq!(told["verdict"], "not_as_expected");
    assert_eq!(told["runs"].as_array().map(Vec::len), Some(2));
    let changed = told["comparisons"].as_array().into_iter().flatten();
    let changed = changed.map(|one| &one["difference"]["verdict_changed"]);
    assert_eq!(changed.collect::<Vec<_>>(), [&json!(false), &json!(true)]);

    let ended = night
        .run(&[&["nightly"], &defect[..]].concat())
        .expect_code(1);
    ended.expect_said(&[
        "against the baseline: 1 with another verdict, 1 with the same verdicts",
        "pause-gt-ttl: a verdict changed (fenced as expected -> not as expected)",
    ]);
    assert_eq!(
        night.index(),
        [
            pair(SCENARIO, "not_as_expected"),
            pair("calm", "as_expected")
        ]
    );
    expect(
        &night.file("index.html"),
        &[
            "1 differs from its baseline",
            "with the defect resource-ignores-token",
        ],
    );
    expect(
        &night.file("summary.md"),
        &[
            "1 of 2 scenarios as expected, 1 not as expected.",
            "| pause-gt-ttl | ✗ not as expected | 1 of 2 |",
            "where 0 was expected",
            "although 1 < 2",
            "## Against the baseline",
            "| fenced | as expected, lock kept | **not as expected, lock kept** |",
        ],
    );
    let told = night.junit();
    let failure = &all(&told, "failure")[0];
    expect(
        failure["attributes"]["message"]
            .as_str()
            .expect("a message"),
        &["stale rejections 0 where 1 was expected"],
    );
    expect(
        failure["text"].as_str().expect("a text"),
        &["although 1 < 2"],
    );
}

#[test]
fn one_that_cannot_run_keeps_no_other_from_running() {
    let _turn = docker_shared();
    let night = Night::new("broken");
    let topology = fs::read_to_string(night.home.file("compose/redis.yml"));
    let broken = topology
        .expect("a topology")
        .replace("[redis-server, --port", "[no-such-server, --port");
    night.home.write("compose/broken.yml", broken);
    let broken = CALM
        .replace("name: calm", "name: broken")
        .replace("topology: redis", "topology: broken");
    night.home.write("scenarios/broken.yml", broken);
    night.home.write("scenarios/absurd.yml", "name: absurd\n");
    let ended = night.run(&["nightly", "--jobs", "2"]).expect_code(70);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    ended.expect_said(&[
        "error: broken ",
        "could not start redis",
        "scenarios/absurd.yml",
    ]);
    let verdicts = [
        pair("broken", "inconclusive"),
        pair("calm", "as_expected"),
        pair(SCENARIO, "as_expected"),
    ];
    assert_eq!(night.index(), verdicts);
    expect(
        &night.file("summary.md"),
        &[
            "## fencepost: not all of it ran",
            "2 of 3 scenarios as expected, 1 inconclusive.",
            "could not start redis",
            "scenarios/absurd.yml",
            "fenced: did not finish",
        ],
    );
    let told = night.junit();
    let kinds = all(&told, "error")
        .into_iter()
        .map(|error| &error["attributes"]["type"]);
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        ["unfinished", "unfinished", "invalid"]
    );
}

#[test]
fn an_interrupted_night_is_healed_and_what_it_came_to_is_written() {
    let _turn = docker_shared();
    let night = Night::new("interrupted");
    let (workers, cases) = CALM.split_once("cases:").expect("cases");
    let frozen = "timeline:\n  - { when: a.acquired, do: { freeze: redis, for: 60s } }\ndeadline: 2m\ncases:";
    let frozen = format!("{workers}{frozen}{cases}");
    let frozen = frozen.replace("name: calm", "name: frozen");
    night.home.write("scenarios/frozen.yml", frozen);
    let run = start(command(night.arguments(&["nightly", "--jobs", "1"])));
    let faults = night.results.join("frozen/latest/unfenced/faults.jsonl");
    await_row(&faults, |row| row["stage"] == "observed");
    run.signal(Signal::SIGINT);
    let ended = run.wait().expect_code(130);
    assert_eq!(owned_by(ended.pid), [""; 0]);
    assert_eq!(rows(&faults).last().expect("rows")["stage"], "healed");
    expect(
        &night.file("summary.md"),
        &[
            "## fencepost: not all of it ran",
            "| calm | ✓ as expected | 2 of 2 |",
            "| frozen | ? inconclusive | 0 of 2 |",
            "| pause-gt-ttl | ? inconclusive | 0 of 2 |  | it never began |",
            "unfenced: did not finish",
        ],
    );
    assert_eq!(all(&night.junit(), "error").len(), 4);
    let verdicts = [
        pair("frozen", "inconclusive"),
        pair("calm", "as_expected"),
        pair(SCENARIO, "none"),
    ];
    assert_eq!(night.index(), verdicts);
}

#[test]
fn a_night_without_docker_says_so_everywhere() {
    let night = Night::new("offline");
    let ended = offline(&night.arguments(&["nightly", "--runtime", "docker"])).expect_code(69);
    ended.expect_said(&["against the baseline: nothing ran that could be compared"]);
    let summary = night.file("summary.md");
    expect(
        &summary,
        &[
            "| calm | ? inconclusive | 0 of 2 |  | it never began |",
            "/nonexistent.sock",
        ],
    );
    let told = night.junit();
    assert_eq!(all(&told, "error").len(), 4);
    let message = &all(&told, "error")[0]["attributes"]["message"];
    assert_eq!(message, "the command ended before this run began");
}

#[test]
fn one_broken_topology_stops_the_night_and_is_told_everywhere() {
    let night = Night::new("compose");
    night.home.write("compose/torn.yml", "services: [\n");
    let ended = offline(&night.arguments(&["nightly", "--runtime", "docker"])).expect_code(64);
    ended.expect_said(&["compose/torn.yml", "written: "]);
    let summary = night.file("summary.md");
    expect(
        &summary,
        &["## fencepost: nothing ran\n", "compose/torn.yml"],
    );
    let told = night.junit();
    let errors = all(&told, "error");
    let kinds = errors.iter().map(|error| &error["attributes"]["type"]);
    assert_eq!(kinds.collect::<Vec<_>>(), ["invalid", "invalid"]);
    expect(
        errors[0]["text"].as_str().expect("a text"),
        &["compose/torn.yml"],
    );
}

#[test]
fn a_baseline_that_nothing_ran_for_is_named() {
    let night = Night::new("missed");
    for scenario in ["calm", "gone"] {
        let folder = night.results.join("baseline").join(scenario);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("result.json"), good().to_string()).expect("a file");
    }
    let ended = offline(&night.arguments(&["nightly", "--runtime", "docker"])).expect_code(69);
    ended.expect_said(&[
        "against the baseline: 2 not comparable",
        "calm: not comparable: it has a baseline, and did not run",
        "gone: not comparable: it has a baseline, and no scenario is called so any more",
    ]);
    expect(&night.file("summary.md"), &["### gone: **not comparable**"]);
}

#[test]
fn a_summary_is_appended_to_what_is_there_also_when_nothing_could_run() {
    let night = Night::new("summary");
    let page = night.results.join("page.md");
    fs::write(&page, "earlier\n").expect("a file");
    let page = page.to_str().expect("a plain path");
    let ended =
        offline(&night.arguments(&["run", "--all", "--runtime", "docker", "--summary", page]));
    ended.expect_code(69);
    let text = night.file("page.md");
    assert!(
        text.starts_with("earlier\n## fencepost: not all of it ran\n"),
        "{text}"
    );
    let nowhere = night.arguments(&["run", "--all", "--summary", "/no/such/folder/page.md"]);
    offline(&nowhere)
        .expect_code(70)
        .expect_said(&["cannot append to /no/such/folder/page.md", "--summary"]);
}
