//! The whole library in simulated time: the same bytes for the same seed, and what came of the
//! cases on real servers. A case that is not simulated says so.

use super::*;
use std::collections::BTreeMap;

/// Fewer than these are played only if something that was simulated is not any more.
const PLAYED_AT_LEAST: usize = 125;

/// What differs from a baseline that was made in containers: the scenario, its cases the field, and why.
const DIFFERENT: &[(&str, &[&str], &str, &str)] = &[
    (
        "healthy",
        &[
            "etcd-fenced",
            "etcd-unfenced",
            "redlock-fenced",
            "redlock-unfenced",
        ],
        "findings",
        "how often they want the lock at once is a matter of speed",
    ),
    (
        "release-toctou",
        &["get-then-del-fenced", "get-then-del-unfenced"],
        "explanation",
        "an observer inside the server misses nothing, and tells the order of events exactly",
    ),
    (
        "clock-drift",
        &["drift-beyond-it"],
        "explanation",
        "the node forgets the lock in the moment in which it grants it again",
    ),
    (
        "clock-drift",
        &["drift-beyond-it-fenced", "token-floor-and-clock-set-back"],
        "explanation",
        ONE_STORY,
    ),
    (
        "redlock-amnesia",
        &["naive-tokens-fenced", "strict-tokens-fenced"],
        "explanation",
        ONE_STORY,
    ),
    ("redlock-clock-jump", &["fenced"], "explanation", ONE_STORY),
    ("etcd-lease-clock", &["fenced"], "explanation", ONE_STORY),
];
const ONE_STORY: &str =
    "since the baseline was made, a refused write is the only story of its case";

#[test]
fn every_scenario_is_the_same_to_the_byte_and_comes_out_as_on_real_servers() {
    let names: Vec<String> = faults_and_loads().0;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| *name != STORM).collect();
    // How many are played beside each other makes no difference.
    let [first, again] = ["1", "2"].map(|jobs| simulate("library", jobs, &names, &[]));
    let mut played = 0;
    for name in names {
        same_evidence(&first, &again, name);
        let ours = latest(&first, name);
        let baseline = project().join("results/baseline").join(name);
        let theirs = json(&baseline.join("result.json"));
        for (case, ours) in ours["stable"]["cases"].as_object().expect("cases") {
            if is_simulated(name, case, ours) {
                agree(name, case, ours, &theirs["stable"]["cases"][case]);
                played += 1;
            }
        }
    }
    assert!(played >= PLAYED_AT_LEAST, "{played} cases");
}

/// With fewer workers and for a shorter time than in `just soak`: it is the weather that counts.
#[test]
fn a_storm_is_the_same_to_the_byte() {
    let mut set = ["x", "y", "z"]
        .map(|group| format!("workers.{group}.copies=4"))
        .to_vec();
    set.push("duration=5s".to_owned());
    let set: Vec<&str> = set.iter().flat_map(|it| ["--set", it.as_str()]).collect();
    let [first, again] = ["1", "2"].map(|jobs| simulate("storm", jobs, &[STORM], &set));
    same_evidence(&first, &again, STORM);
    for case in ["redis", "redlock"] {
        let ours = &latest(&first, STORM)["stable"]["cases"][case];
        assert_eq!(ours["verdict"], "as_expected", "{case}: {ours:#}");
    }
}

/// Plays scenarios; returns the folder of their results.
fn simulate(what: &str, jobs: &str, names: &[&str], set: &[&str]) -> PathBuf {
    let results = fresh_folder(&format!("simulated-{what}-{jobs}"));
    let folder = results.to_str().expect("a readable path");
    let how = ["--jobs", jobs, "--results", folder];
    let ended = run_simulated(&[&how, names, set].concat());
    assert!(matches!(ended.code, Some(0 | 1 | INCONCLUSIVE)), "{ended}");
    results
}

/// Expects every file that the cases left to be the same. Beside them, result.json holds how long
/// the judge took.
fn same_evidence(one: &Path, other: &Path, name: &str) {
    let [one, other] = [one, other].map(|results| results.join(name).join("latest"));
    let cases = loaded(name).cases;
    for case in &cases {
        let [ours, theirs] = [&one, &other].map(|run| files_of(&run.join(case.name.as_str())));
        assert!(ours.keys().eq(theirs.keys()), "{name} {}", case.name);
        for (file, bytes) in &ours {
            assert!(
                theirs[file] == *bytes,
                "{name} {}: {file} differs",
                case.name
            );
        }
    }
    let stable = |run: &Path| json(&run.join("result.json"))["stable"].take();
    assert_eq!(stable(&one), stable(&other), "{name}");
}

fn files_of(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let entries = entries.map(|entry| entry.expect("an entry").path());
    let files = entries.filter(|path| path.is_file());
    let read = |path: PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), fs::read(&path).expect("a file"))
    };
    files.map(read).collect()
}

/// Returns whether a case was played. One that was not is inconclusive, and its only doubt names
/// what is not simulated.
fn is_simulated(name: &str, case: &str, ours: &Value) -> bool {
    let doubts = ours["doubts"].as_array().expect("doubts");
    let is_missing = |doubt: &Value| {
        let doubt = doubt.as_str().unwrap_or_default();
        doubt.starts_with("cannot be done here: ") && doubt.contains("is not simulated; use ")
    };
    if !doubts.iter().any(is_missing) {
        return true;
    }
    assert_eq!(ours["verdict"], "inconclusive", "{name} {case}");
    assert_eq!(doubts.len(), 1, "{name} {case}: {doubts:#?}");
    false
}

/// Expects the stable part of a case to be that of its baseline.
fn agree(name: &str, case: &str, ours: &Value, theirs: &Value) {
    let [ours, theirs] = [ours, theirs].map(|it| it.as_object().expect("a case"));
    let fields: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
    for field in fields {
        let mut different = DIFFERENT.iter();
        let is_meant = different.any(|(scenario, cases, different, _)| {
            *scenario == name && cases.contains(&case) && different == field
        });
        let agrees = ours.get(field) == theirs.get(field);
        // One that agrees by now has to leave the list.
        assert_eq!(
            agrees, !is_meant,
            "{name} {case}: {field}: {ours:#?} {theirs:#?}"
        );
    }
}

const ONLY_SIMULATED: &str = "pause-gt-ttl-memory";

/// Nobody has to say so: there is nothing else that it could be played on.
#[test]
fn what_exists_in_the_simulation_only_is_played_there() {
    let results = fresh_folder("only-simulated");
    let folder = results.to_str().expect("a readable path");
    offline(&["run", ONLY_SIMULATED, "--results", folder]).expect_code(0);
    let result = came_out_as_expected(&results, ONLY_SIMULATED);
    assert_eq!(result["environment"]["runtime"], "sim");
}

#[test]
fn what_exists_in_the_simulation_only_is_refused_on_real_servers() {
    let results = fresh_folder("only-simulated-refused");
    let folder = results.to_str().expect("a readable path");
    let local = [
        "run",
        ONLY_SIMULATED,
        "--runtime",
        "local",
        "--results",
        folder,
    ];
    let reason = "memory is only simulated; use --runtime sim";
    offline(&local)
        .expect_code(INCONCLUSIVE)
        .expect_said(&[reason]);
    let ended = offline(&["up", "memory"]).expect_code(64);
    ended.expect_said(&["cannot start `memory`: its servers are only simulated"]);
}

const LOST_DISK: &str = "
name: lost-disk
about: A member of an etcd loses its disk.
topology: etcd
lock: { backend: etcd, ttl: 2s }
workers: { a: { key: k, gate: before_write } }
timeline:
  - { when: a.at_gate, do: { restart-empty: etcd-2 } }
cases: { fenced: { fence: on, expect: { violations: 0 } } }
";

/// A real one asks the others whether it was there before, and ends.
#[test]
fn a_member_of_an_etcd_that_lost_its_disk_does_not_come_back() {
    let results = fresh_folder("lost-disk");
    let file = results.join("lost-disk.yml");
    fs::write(&file, LOST_DISK).expect("a folder of ours");
    let [file, folder] = [&file, &results].map(|path| path.to_str().expect("a plain path"));
    let ended = offline(&["run", file, "--runtime", "sim", "--results", folder]);
    let why = "etcd-2 did not get ready: its process ended";
    ended.expect_code(INCONCLUSIVE).expect_said(&[why]);
}
