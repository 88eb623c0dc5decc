//! The lock crate as a stranger gets it: only what it needs, and nothing unsafe.

use crate::support::{fresh_folder, project};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// What only the harness needs.
const NOT_FOR_STRANGERS: [&str; 7] = [
    "axum",
    "bollard",
    "clap",
    "fencepost-judge",
    "nix",
    "reqwest",
    "vdso-clock",
];

#[test]
fn one_backend_brings_nothing_of_the_harness_along() {
    for (features, has_etcd) in [
        ("redis", false),
        ("redlock", false),
        ("etcd", true),
        ("postgres", false),
        ("mariadb", false),
        ("zookeeper", false),
        ("consul", false),
        ("dynamodb", false),
        ("memory", false),
    ] {
        let mut tree = cargo(&project());
        tree.args([
            "tree",
            "--package",
            "fencing-lock",
            "--edges",
            "normal,build",
        ])
        .args([
            "--prefix",
            "none",
            "--no-default-features",
            "--features",
            features,
        ]);
        let tree = succeeded(tree.output().expect("cargo"));
        let names: Vec<&str> = tree
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        assert!(names.contains(&"tokio"), "{tree}");
        for stranger in NOT_FOR_STRANGERS {
            // etcd-client asks for all of tonic, and that has axum.
            let is_etcds_own = stranger == "axum" && has_etcd;
            let is_there = names.contains(&stranger);
            assert!(!is_there || is_etcds_own, "{features} brings {stranger}");
        }
        // prost-build is what calls protoc.
        assert_eq!(
            names.contains(&"prost-build"),
            has_etcd,
            "{features}: {tree}"
        );
        assert_eq!(names.contains(&"etcd-client"), has_etcd, "{features}");
    }
}

#[test]
fn the_judge_has_no_runtime() {
    let mut tree = cargo(&project());
    tree.args([
        "tree",
        "--package",
        "fencepost-judge",
        "--edges",
        "normal",
        "--prefix",
        "none",
    ]);
    let tree = succeeded(tree.output().expect("cargo"));
    for line in tree.lines() {
        let name = line.split(' ').next().unwrap_or_default();
        let is_io = ["tokio", "mio", "hyper", "reqwest", "socket2"].contains(&name);
        assert!(!is_io, "{line}");
    }
}

#[test]
fn a_stranger_cannot_name_an_unsafe_mode_or_a_mutant() {
    let folder = fresh_folder("lock-crate-of-a-stranger");
    fs::create_dir(folder.join("src")).expect("a folder");
    let manifest = format!(
        "[package]\nname = \"stranger\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\
         [dependencies]\nfencing-lock = {{ path = {:?}, features = [\"redlock\"] }}\n[workspace]\n",
        project().join("crates/fencing-lock")
    );
    fs::write(folder.join("Cargo.toml"), manifest).expect("writable");
    fs::copy(project().join("Cargo.lock"), folder.join("Cargo.lock")).expect("copied");

    check(
        &folder,
        "fencing_lock::{LockClient, RedisBackend, RedlockBackend}",
    )
    .expect("compiles");
    for unsafe_name in [
        "fencing_lock::UnsafeRelease",
        "fencing_lock::Mutant",
        "fencing_lock::TokenScheme::UnsafeMaxOfCounters",
        "fencing_lock::ReleaseOutcome::FreedAnother",
        "fencing_lock::servers",
    ] {
        let refused = check(&folder, unsafe_name).expect_err(unsafe_name);
        assert!(refused.contains("E0432"), "{unsafe_name}: {refused}");
    }
}

/// Whether a program that uses this name compiles; the compiler's words, if not.
fn check(folder: &Path, used: &str) -> Result<(), String> {
    let program = format!("#[allow(unused_imports)]\nuse {used};\nfn main() {{}}\n");
    fs::write(folder.join("src/main.rs"), program).expect("writable");
    let target = folder.with_file_name("lock-crate-target");
    let checked = cargo(folder)
        .args(["check", "--offline", "--quiet", "--target-dir"])
        .arg(target)
        .output();
    let checked = checked.expect("cargo");
    match checked.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&checked.stderr).into_owned()),
    }
}

fn cargo(folder: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(folder);
    cargo
}

fn succeeded(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
