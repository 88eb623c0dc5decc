//! `--format json`: one document on stdout, whatever comes of it, and the exit code
//! that it has for people.

use crate::support::*;
use serde_json::{Value, json};

#[track_caller]
fn document(ended: &Ended) -> Value {
    let document = serde_json::from_str(&ended.stdout);
    document.unwrap_or_else(|error| panic!("{error}\n{ended}"))
}

#[track_caller]
fn told(arguments: &[&str], code: i32) -> Value {
    let arguments = [arguments, &["--format", "json"]].concat();
    document(&offline(&arguments).expect_code(code))
}

#[test]
fn scenarios_are_listed_with_their_kind_and_cases() {
    let listed = told(&["list"], 0);
    let all = listed["scenarios"].as_array().expect("a list");
    let one = |name: &str| {
        all.iter()
            .find(|one| one["name"] == name)
            .expect("it is listed")
    };
    assert_eq!(one(SCENARIO)["cases"], json!(["unfenced", "fenced"]));
    assert_eq!(one(SCENARIO)["kind"], "faults");
    assert_eq!(one("hot-key-contention")["kind"], "load");
    assert!(all.iter().all(|one| one["about"].is_string()));
}

#[test]
fn a_plan_has_its_steps_and_what_each_case_expects() {
    let plan = told(&["plan", SCENARIO], 0);
    assert_eq!(plan["scenario"], SCENARIO);
    let group = &plan["groups"][0];
    assert!(
        group["steps"]
            .as_array()
            .is_some_and(|steps| steps.len() > 3)
    );
    assert_eq!(group["cases"][0]["name"], "unfenced");
    assert_eq!(group["cases"][0]["fence"], "off");
    assert!(
        group["cases"][0]["expects"]
            .as_str()
            .is_some_and(|words| words.contains("violations"))
    );
}

#[test]
fn every_problem_of_a_file_has_its_place() {
    let home = Home::new();
    let file = "scenarios/pause-gt-ttl.yml";
    home.replace(file, "ttl: 2s", "ttl: soon");
    home.replace(file, "topology: redis", "topologie: redis");
    let place = home.place(file, "topologie");
    let all = told(&["--home", home.path(), "validate"], 64);
    let all = all["files"].as_array().expect("a list");
    let wrong: Vec<&Value> = all
        .iter()
        .filter(|one| one["problems"].is_array())
        .collect();
    assert_eq!(wrong.len(), 1);
    let problems = wrong[0]["problems"].as_array().expect("a list");
    let places: Vec<String> = problems
        .iter()
        .map(|problem| format!("{file}:{}:{}", problem["line"], problem["column"]))
        .collect();
    assert!(places.contains(&place), "{place} in {places:?}");
    assert!(
        problems
            .iter()
            .all(|problem| problem["message"].is_string())
    );
    let fine = all.iter().filter(|one| one["is"] == "scenario").count();
    assert_eq!(fine + 1, all.len());
    // A run that cannot begin has the same to say.
    let run = told(&["--home", home.path(), "run", SCENARIO], 64);
    assert_eq!(
        run["problems"].as_array().map(Vec::len),
        Some(problems.len())
    );
    let listed = told(&["--home", home.path(), "list"], 64);
    let listed = listed["scenarios"].as_array().expect("a list");
    assert!(
        listed
            .iter()
            .any(|one| one["name"] == SCENARIO && one["error"].is_string())
    );
}

#[test]
fn an_error_is_a_document_with_its_exit_code() {
    for (arguments, code) in [
        (&["run", SCENARIO, "--runtime", "docker"][..], 69),
        (&["images"], 69),
        (&["clean", "--images"], 69),
        (&["up", "redis"], 69),
        (&["down"], 69),
        (&["check", "/nonexistent"], 64),
        (&["plan", "no-such-scenario"], 64),
        (&["contend", "--redis", "127.0.0.1:1"], 69),
        (&["keyspace", "--redis", "nowhere"], 64),
        (&["gen", "--redis", "127.0.0.1:1", "--keys", "1"], 69),
        (&["clock", "show", "999999999"], 64),
        (&["diff", "/no/such/file", "/no/such/other"], 64),
    ] {
        let told = told(arguments, code);
        assert_eq!(told["exit_code"], code, "{arguments:?}");
        assert!(
            told["error"]
                .as_str()
                .is_some_and(|error| !error.is_empty()),
            "{arguments:?}"
        );
    }
}

#[test]
fn the_doctor_tells_each_finding_with_its_state() {
    let mut doctor = command(["doctor", "--format", "json"]);
    doctor.env("DOCKER_HOST", "unix:///nonexistent.sock");
    // Else runs could do without Docker.
    doctor.env("FENCEPOST_ETCD", "/nonexistent");
    let told = document(&start(doctor).wait().expect_code(69));
    let findings = told["findings"].as_array().expect("a list");
    assert!(findings.iter().any(|finding| finding["state"] == "missing"));
    assert!(findings.iter().all(|finding| finding["what"].is_string()));
}

#[test]
fn the_clocks_of_a_process_are_a_document() {
    let pid = std::process::id().to_string();
    let ended = offline(&["clock", "show", &pid, "--format", "json"]);
    // Without the right to look, that is what the document says.
    let told = document(&ended);
    match ended.code {
        Some(0) => assert_eq!(told["realtime"]["offset_ns"], 0),
        code => assert_eq!(told["exit_code"], json!(code)),
    }
}

#[test]
fn what_is_no_format_is_wrong_usage() {
    for command in ["list", "doctor", "clean"] {
        offline(&[command, "--format", "markdown"])
            .expect_code(64)
            .expect_said(&["possible values: human, json"]);
    }
}

#[test]
fn a_run_is_one_document_and_its_progress_is_elsewhere() {
    let _turn = docker_shared();
    let results = fresh_folder("run-as-json");
    let folder = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--repeat", "2"];
    let run = [&run[..], &["--results", folder, "--format", "json"]].concat();
    let ended = fencepost(&run).expect_code(0);
    let told = document(&ended);
    assert_eq!(told["verdict"], "as_expected");
    let runs = told["runs"].as_array().expect("a list");
    assert_eq!(runs.len(), 2);
    for run in runs {
        let file = std::path::Path::new(run["folder"].as_str().expect("a path"));
        assert_eq!(run["stable"], json(&file.join("result.json"))["stable"]);
    }
    let tally =
        json!([{ "scenario": SCENARIO, "case": "fenced", "outcomes": { "as_expected": 2 } }]);
    assert_eq!(told["tally"], tally);
    assert!(ended.stderr.contains("pause-gt-ttl fenced …"), "{ended}");
    let images = fencepost(&["images", "--format", "json"]).expect_code(0);
    assert!(
        document(&images)["images"]["fencepost/self:latest"].is_string(),
        "{images}"
    );
}
