//! The house stays as ARCHITECTURE.md describes it.

use crate::support::{offline, project};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const MOST_LINES: usize = 400;

/// The crates of this workspace that a room has to be allowed to know, so not `bounded_io`.
const CRATES: [&str; 7] = [
    "fencepost_judge",
    "fencing_lock",
    "memory_lock_server",
    "simulated_etcd",
    "simulated_redis",
    "toxiproxy_server",
    "vdso_clock",
];

/// Who may know whom, rooms of `src/` and crates beside it. A room may always use
/// itself, `cli` may use everybody, and nobody may use `cli`.
const MAY_KNOW: [(&str, &[&str]); 18] = [
    ("builtin", &[]),
    ("certify", &["model", "resource", "fencing_lock"]),
    ("model", &["fencepost_judge", "fencing_lock"]),
    ("clock", &["model", "vdso_clock"]),
    ("progress", &[]),
    ("yaml", &["model"]),
    ("services", &["model", "clock", "fencing_lock"]),
    ("resource", &["model", "clock", "fencing_lock"]),
    (
        "scenario",
        &["builtin", "model", "yaml", "faults", "load", "services"],
    ),
    (
        "worker",
        &["model", "clock", "services", "resource", "fencing_lock"],
    ),
    (
        "load",
        &[
            "model",
            "clock",
            "services",
            "resource",
            "progress",
            "fencing_lock",
        ],
    ),
    (
        "cluster",
        &[
            "builtin",
            "model",
            "services",
            "yaml",
            "progress",
            "fencing_lock",
            "toxiproxy_server",
        ],
    ),
    (
        "faults",
        &[
            "model",
            "clock",
            "cluster",
            "services",
            "toxiproxy_server",
            "yaml",
            "fencing_lock",
        ],
    ),
    (
        "simulation",
        &[
            "model",
            "clock",
            "cluster",
            "faults",
            "services",
            "resource",
            "worker",
            "progress",
            "fencing_lock",
            "memory_lock_server",
            "simulated_etcd",
            "simulated_redis",
            "toxiproxy_server",
        ],
    ),
    (
        "run",
        &[
            "builtin",
            "simulation",
            "model",
            "clock",
            "cluster",
            "conformance",
            "faults",
            "scenario",
            "resource",
            "services",
            "load",
            "progress",
            "report",
            "fencepost_judge",
            "fencing_lock",
        ],
    ),
    ("report", &["model"]),
    (
        "explore",
        &["model", "yaml", "scenario", "services", "run", "progress"],
    ),
    (
        "conformance",
        &["model", "clock", "cluster", "resource", "services"],
    ),
];

#[test]
fn rooms_know_only_whom_they_may() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_KNOW.into();
    let mut wrong = BTreeSet::new();
    for file in rust_files("src") {
        let Some(room) = room_of(&file).filter(|room| room != "cli") else {
            continue;
        };
        let allowed = allowed.get(room.as_str());
        let allowed = allowed.unwrap_or_else(|| panic!("the room `{room}` is not in the table"));
        for known in rooms_used(&fs::read_to_string(&file).expect("readable")) {
            let fine = known == room || allowed.contains(&known.as_str());
            if !fine {
                wrong.insert(format!("{} uses {known}", shown(&file)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_docker_client_is_behind_one_door() {
    let door = project().join("src/cluster/docker");
    for file in rust_files("src") {
        let text = fs::read_to_string(&file).expect("readable");
        let named = text.contains("bollard");
        assert!(!named || file.starts_with(&door), "{}", shown(&file));
    }
}

/// Which runtime it is is known to whoever chooses it, and to nobody else.
#[test]
fn the_runtimes_are_behind_one_seam() {
    let inside = ["src/cluster", "src/cli"].map(|folder| project().join(folder));
    for file in rust_files("src") {
        let is_inside = inside.iter().any(|folder| file.starts_with(folder));
        let text = fs::read_to_string(&file).expect("readable");
        let text: String = text.split_whitespace().collect();
        for runtime in ["docker", "local"] {
            let named = names_inside_cluster(&text).contains(&runtime);
            assert!(!named || is_inside, "{} names {runtime}", shown(&file));
        }
    }
}

/// Of `cluster::a::b` and `cluster::{c::d, e}`: a, c and e. The text has no blanks.
fn names_inside_cluster(text: &str) -> Vec<&str> {
    let parts = text.match_indices("cluster::").flat_map(|(at, path)| {
        let rest = &text[at + path.len()..];
        match rest.strip_prefix('{') {
            None => vec![rest],
            Some(group) => top_level(group),
        }
    });
    let is_end = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    parts.filter_map(|part| part.split(is_end).next()).collect()
}

#[test]
fn runtimes_are_seen_however_they_are_named() {
    let text = "usecrate::cluster::{Image,local::{LocalRuntime}};cluster::docker::x();cluster::way";
    let names = names_inside_cluster(text);
    assert_eq!(names, ["Image", "local", "docker", "way"]);
}

/// What a simulation of the locks has to decide, and so only `env.rs` may name.
const FROM_OUTSIDE: [&str; 10] = [
    "Uuid::new_v4",
    "SystemTime::now",
    "std::time::Instant",
    "tokio::spawn",
    "thread::spawn",
    "JoinSet",
    "runtime::Handle",
    "Rng::new",
    "TcpStream::connect",
    "RandomState",
];

#[test]
fn the_locks_take_clock_chance_tasks_and_connections_from_outside() {
    let locks = project().join("crates/fencing-lock/src");
    let excepted = [locks.join("env.rs"), locks.join("redlock/model")];
    let mut wrong = Vec::new();
    for file in rust_files("crates/fencing-lock/src") {
        if excepted.iter().any(|except| file.starts_with(except)) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("readable");
        let found = left_to_chance(
            text.split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or(&text),
        );
        wrong.extend(found.iter().map(|word| format!("{}: {word}", shown(&file))));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn left_to_chance(text: &str) -> Vec<&str> {
    let named = FROM_OUTSIDE.iter().filter(|word| text.contains(**word));
    let mut found: Vec<&str> = named.copied().collect();
    // The functions draw from a generator of the thread; a generator of one's own has a seed.
    let mut draws = text.split("fastrand::").skip(1);
    let drawn = draws.find(|rest| !rest.starts_with("Rng"));
    found.extend(drawn.map(|_| "fastrand"));
    let selects = text.split("select! {").skip(1);
    let unbiased = selects.filter(|body| !is_biased(body));
    found.extend(unbiased.map(|_| "select! without biased"));
    found
}

/// A comment may be in front of it.
fn is_biased(select: &str) -> bool {
    let lines = select.lines().map(str::trim);
    let mut code = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    code.next() == Some("biased;")
}

#[test]
fn what_is_left_to_chance_is_seen() {
    for (text, found) in [
        ("let id = Uuid::new_v4();", "Uuid::new_v4"),
        ("fastrand::Rng::with_seed(1); fastrand::u32(..)", "fastrand"),
        (
            "select! {\n  a = b => {}\n  biased;\n}",
            "select! without biased",
        ),
    ] {
        assert_eq!(left_to_chance(text), [found]);
    }
    let fine = "fastrand::Rng::with_seed(1); tokio::select! {\n  // Why.\n  biased;\n}";
    assert!(left_to_chance(fine).is_empty());
}

#[test]
fn no_file_is_too_long() {
    for folder in ["src", "crates", "tests", "benches"] {
        for file in rust_files(folder) {
            let lines = fs::read_to_string(&file).expect("readable").lines().count();
            assert!(lines <= MOST_LINES, "{}: {lines} lines", shown(&file));
        }
    }
}

#[test]
fn the_map_of_the_house_names_every_room_and_crate() {
    let map = document("ARCHITECTURE.md");
    let folders = ["src", "crates"].map(|folder| fs::read_dir(project().join(folder)));
    for entry in folders
        .into_iter()
        .flat_map(|folder| folder.expect("a folder"))
    {
        let entry = entry.expect("readable");
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_named = match entry.path().is_dir() {
            true => map.contains(&format!("{name}/")),
            false => map.contains(&name),
        };
        assert!(is_named, "ARCHITECTURE.md does not name {name}");
    }
}

#[test]
fn the_readme_names_every_command_and_every_exit_code() {
    let readme = document("README.md");
    let help = offline(&["--help"]).expect_code(0).stdout;
    let commands = help
        .split("Commands:\n")
        .nth(1)
        .expect("a list of commands");
    let commands = commands.lines().take_while(|line| line.starts_with("  "));
    // A description that goes on in the next line is indented deeper.
    let commands = commands.filter(|line| !line.starts_with("   "));
    let commands: Vec<&str> = commands
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.contains(&"run") && commands.len() > 5, "{help}");
    for command in commands {
        let named = format!("fencepost {command}");
        let quoted = format!("`{command}");
        let is_named = readme.contains(&named) || readme.contains(&quoted);
        assert!(is_named, "README.md does not name {command}");
    }
    let words: BTreeSet<&str> = readme.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    for code in ["0", "1", "2", "64", "69", "70", "130"] {
        let is_named = words.contains(code);
        assert!(is_named, "README.md does not name exit code {code}");
    }
}

#[test]
fn uses_of_rooms_are_seen_however_they_are_written() {
    let text = "use crate::model::Event;\nuse crate::{cli::x, run};\nlet a = crate::yaml::parse();";
    let expected = ["cli", "model", "run", "yaml"].map(str::to_owned);
    assert_eq!(rooms_used(text), BTreeSet::from(expected));
}

fn document(name: &str) -> String {
    let text = fs::read_to_string(project().join(name));
    text.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn shown(file: &Path) -> String {
    let inside = file.strip_prefix(project()).unwrap_or(file);
    inside.display().to_string()
}

/// `src/cluster/docker/mod.rs` and `src/progress.rs` are in the rooms `cluster`
/// and `progress`; `lib.rs` and `main.rs` are in none.
fn room_of(file: &Path) -> Option<String> {
    let inside = file.strip_prefix(project().join("src")).ok()?;
    let first = Path::new(inside.iter().next()?).with_extension("");
    let room = first.to_str()?.to_owned();
    (room != "lib" && room != "main").then_some(room)
}

fn rooms_used(text: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_used = |name: &&&str| text.contains(&format!("{name}::"));
    let mut used: BTreeSet<String> = CRATES
        .iter()
        .filter(is_used)
        .map(|&name| name.into())
        .collect();
    for (at, path) in text.match_indices("crate::") {
        let rest = &text[at + path.len()..];
        let names: Vec<&str> = match rest.strip_prefix('{') {
            None => vec![rest],
            Some(group) => top_level(group),
        };
        for name in names {
            let end = name.find(|c| !is_name(c)).unwrap_or(name.len());
            used.insert(name[..end].to_owned());
        }
    }
    used
}

/// The parts of `{a::{b, c}, d}` behind its opening brace: `a::…` and `d`.
fn top_level(group: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(group[start..at].trim());
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut open = vec![project().join(folder)];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("readable").path();
            match path.is_dir() {
                true => open.push(path),
                false => files.extend(path.extension().is_some_and(|e| e == "rs").then_some(path)),
            }
        }
    }
    assert!(!files.is_empty(), "{folder} has Rust files");
    files
}
