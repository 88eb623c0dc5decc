//! A folder of results may come from anybody: an archive, a build server, a shared disk. Whatever lies in it in
//! place of a file, commands end soon, say what is wrong, quote nobody's secret and write over nothing.

use crate::support::*;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const SECRET: &str = "s3cr3t-token-value";

/// What stands where a file should.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Instead {
    Pipe,
    Device,
    Secret,
    Sparse,
    Folder,
    Socket,
    Garbage,
    Nothing,
}

impl Instead {
    const ALL: [Instead; 8] = [
        Instead::Pipe,
        Instead::Device,
        Instead::Secret,
        Instead::Sparse,
        Instead::Folder,
        Instead::Socket,
        Instead::Garbage,
        Instead::Nothing,
    ];

    fn put(self, path: &Path, secret: &Path) {
        match fs::metadata(path).is_ok_and(|about| about.is_dir()) {
            true => fs::remove_dir_all(path).expect("a copy"),
            false => fs::remove_file(path).expect("a copy"),
        }
        match self {
            Instead::Pipe => {
                nix::unistd::mkfifo(path, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
            }
            Instead::Device => symlink("/dev/zero", path).expect("a link"),
            Instead::Secret => symlink(secret, path).expect("a link"),
            Instead::Sparse => {
                let file = File::create(path).expect("a file");
                file.set_len(1 << 40).expect("a sparse file");
            }
            Instead::Folder => fs::create_dir(path).expect("a folder"),
            Instead::Socket => drop(UnixListener::bind(path).expect("a socket")),
            Instead::Garbage => fs::write(path, b"\xff\x00{[\"\n\xfe\n").expect("a file"),
            Instead::Nothing => fs::write(path, "").expect("a file"),
        }
    }

    /// What is said of it, where there is one way to say it.
    fn words(self) -> &'static str {
        match self {
            Instead::Pipe | Instead::Socket => "it is not a regular file",
            Instead::Device | Instead::Secret => "it is a link, and links are not followed here",
            Instead::Sparse => "has more than",
            Instead::Folder => "is a directory",
            Instead::Garbage | Instead::Nothing => "",
        }
    }

    /// Whether it still is what it was.
    fn is_at(self, path: &Path) -> bool {
        let about = fs::symlink_metadata(path).expect("something");
        let kind = about.file_type();
        match self {
            Instead::Pipe => kind.is_fifo(),
            Instead::Device | Instead::Secret => kind.is_symlink(),
            Instead::Sparse => about.len() == 1 << 40,
            Instead::Folder => kind.is_dir(),
            Instead::Socket => kind.is_socket(),
            Instead::Garbage | Instead::Nothing => kind.is_file(),
        }
    }
}

/// The program where it may have little memory and little time.
fn bounded(arguments: &[&str]) -> Ended {
    bounded_after("true", arguments)
}

/// The same, after a script that has its process id.
fn bounded_after(script: &str, arguments: &[&str]) -> Ended {
    let program = env!("CARGO_BIN_EXE_fencepost");
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!(
            "ulimit -v 2000000; ulimit -t 20; {script}; exec \"$0\" \"$@\""
        ))
        .arg(program)
        .args(arguments)
        .current_dir(project())
        .env_remove("FENCEPOST_HOME");
    start(command).wait()
}

/// Runs of one scenario, one of them recorded whole, beside somebody's secret.
struct Folders {
    all: TempDir,
}

const RUN: &str = "20261113T020000.000Z-1";

impl Folders {
    fn new() -> Folders {
        let all = tempfile::tempdir().expect("a temporary folder");
        let folders = Folders { all };
        fs::create_dir_all(folders.run()).expect("a folder");
        let recorded = project().join("tests/results/pause-gt-ttl/settings");
        copy_folder(&recorded, &folders.run());
        fs::write(
            folders.run().join("result.json"),
            of_now("good").to_string(),
        )
        .expect("a copy");
        fs::write(folders.secret(), format!("\"{SECRET}\"\n")).expect("a secret");
        folders
    }

    fn secret(&self) -> PathBuf {
        self.all.path().join("secret")
    }

    fn results(&self) -> PathBuf {
        self.all.path().join("results")
    }

    fn run(&self) -> PathBuf {
        self.results().join(SCENARIO).join(RUN)
    }

    #[track_caller]
    fn expect_untouched(&self) {
        let secret = fs::read_to_string(self.secret()).expect("a secret");
        assert_eq!(secret, format!("\"{SECRET}\"\n"));
    }
}

/// A real result of the scenario as it is now.
fn of_now(name: &str) -> Value {
    let mut result = json(Path::new(&real(name)));
    let file = project().join(format!("scenarios/{SCENARIO}.yml"));
    let text = fs::read(file).expect("the scenario");
    result["stable"]["scenario"]["hash"] = json!(format!("sha256:{:x}", Sha256::digest(text)));
    result
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a plain path")
}

#[track_caller]
fn expect_refused(ended: &Ended, instead: Instead, file: &str) {
    let said = format!("{}{}", ended.stdout, ended.stderr).to_lowercase();
    assert!(!said.contains(SECRET), "{file}: {instead:?}: {ended}");
    assert!(!said.contains("panicked"), "{file}: {instead:?}: {ended}");
    let words = instead.words();
    assert!(said.contains(words), "{file}: {instead:?}: {ended}");
    assert!(said.contains(file), "{file}: {instead:?}: {ended}");
}

#[test]
fn no_file_of_a_run_hangs_or_floods_whoever_judges_it() {
    let files = [
        "scenario.yml",
        "result.json",
        "fenced/case.json",
        "fenced/history.jsonl",
        "fenced/accepted.jsonl",
        "fenced/faults.jsonl",
        "fenced/locks.jsonl",
    ];
    for file in files {
        for instead in Instead::ALL {
            let folders = Folders::new();
            let path = folders.run().join(file);
            instead.put(&path, &folders.secret());
            for command in ["check", "report"] {
                let ended = bounded(&[command, text(&folders.run())]);
                // Rows that nobody wrote are a record like any other.
                if instead == Instead::Nothing && file.ends_with(".jsonl") {
                    assert!(matches!(ended.code, Some(0..=2)), "{file}: {ended}");
                    continue;
                }
                assert_eq!(ended.code, Some(64), "{file}: {instead:?}: {ended}");
                expect_refused(&ended, instead, file);
            }
            assert!(instead.is_at(&path), "{file}: {instead:?}");
            folders.expect_untouched();
        }
    }
}

#[test]
fn the_folder_of_a_case_is_a_folder() {
    for instead in [Instead::Secret, Instead::Pipe, Instead::Garbage] {
        let folders = Folders::new();
        let elsewhere = folders.all.path().join("elsewhere");
        fs::rename(folders.run().join("fenced"), &elsewhere).expect("a copy");
        fs::create_dir(folders.run().join("fenced")).expect("a copy");
        // Also one that leads to a case.
        let leads_to = match instead {
            Instead::Secret => elsewhere,
            _ => folders.secret(),
        };
        instead.put(&folders.run().join("fenced"), &leads_to);
        for command in ["check", "report"] {
            let ended = bounded(&[command, text(&folders.run())]).expect_code(64);
            assert!(ended.stderr.contains("fenced: "), "{ended}");
        }
        folders.expect_untouched();
    }
}

#[test]
fn a_hostile_result_is_listed_compared_and_blessed_by_nobody() {
    for instead in Instead::ALL {
        let folders = Folders::new();
        let path = folders.run().join("result.json");
        instead.put(&path, &folders.secret());
        let results = folders.results();
        let ended = bounded(&["report", "--index", text(&results)]).expect_code(0);
        assert!(!ended.stderr.contains(SECRET), "{ended}");
        let page = fs::read_to_string(results.join("index.html")).expect("a page");
        assert!(!page.contains(SECRET), "{instead:?}");
        assert!(
            page.to_lowercase().contains(instead.words()),
            "{instead:?}: {page}"
        );

        for side in [text(&path), text(&folders.run())] {
            // What a person names is followed, and may be a folder of results; it is no
            // result then.
            let is_other = path.is_symlink() || path.is_dir();
            let words = match side == text(&path) && is_other {
                true => "",
                false => instead.words(),
            };
            let ended = bounded(&["diff", &real("good"), side]);
            assert!(matches!(ended.code, Some(2 | 64)), "{instead:?}: {ended}");
            let said = format!("{}{}", ended.stdout, ended.stderr).to_lowercase();
            let quotes = said.contains(SECRET) && side != text(&path);
            assert!(said.contains(words) && !quotes, "{instead:?}: {ended}");
        }
        let ended = bounded(&["bless", "--results", text(&results), text(&folders.run())]);
        assert!(matches!(ended.code, Some(2 | 64)), "{instead:?}: {ended}");
        expect_refused(&ended, instead, "result.json");
        assert!(!results.join("baseline").exists(), "{instead:?}");
        assert!(instead.is_at(&path), "{instead:?}");
        folders.expect_untouched();
    }
}

#[test]
fn an_overview_is_written_over_nothing_but_an_overview() {
    for instead in Instead::ALL {
        let folders = Folders::new();
        let results = folders.results();
        let index = results.join("index.html");
        fs::write(&index, "").expect("a file");
        instead.put(&index, &folders.secret());
        let ended = bounded(&["report", "--index", text(&results)]);
        assert!(matches!(ended.code, Some(64 | 70)), "{instead:?}: {ended}");
        expect_refused(&ended, instead, "index.html");
        assert!(instead.is_at(&index), "{instead:?}");
        folders.expect_untouched();
    }
}

/// Files are written beside their places first, under names that can be guessed.
#[test]
fn nothing_is_written_through_a_planted_link() {
    let folders = Folders::new();
    let (results, run, secret) = (folders.results(), folders.run(), folders.secret());
    let plant = |folder: &Path, name: &str| {
        fs::create_dir_all(folder).expect("a folder");
        let (folder, secret) = (text(folder), text(&secret));
        format!(
            "for n in 0 1 2 3 4 5 6 7 8 9; do ln -s '{secret}' '{folder}/.{name}.'$$.$n || exit 99; done"
        )
    };
    bounded_after(&plant(&run, "report.html"), &["report", text(&run)]).expect_code(0);
    let page = run.join("report.html");
    assert!(fs::symlink_metadata(&page).expect("a page").is_file());
    folders.expect_untouched();

    let index = ["report", "--index", text(&results)];
    bounded_after(&plant(&results, "index.html"), &index).expect_code(0);
    folders.expect_untouched();

    let baseline = results.join("baseline").join(SCENARIO);
    let bless = ["bless", "--results", text(&results), text(&run)];
    bounded_after(&plant(&baseline, "result.json"), &bless).expect_code(0);
    folders.expect_untouched();
    assert_eq!(json(&baseline.join("result.json")), of_now("good"));

    // The place itself may be a link too: it is replaced, and not followed.
    for place in [page, baseline.join("result.json")] {
        fs::remove_file(&place).expect("a file");
        symlink(&secret, &place).expect("a link");
    }
    bounded(&["report", text(&run)]).expect_code(0);
    bounded(&bless).expect_code(0);
    folders.expect_untouched();
}

#[test]
fn a_baseline_is_not_written_into_a_folder_elsewhere() {
    for planted in ["baseline", "baseline/pause-gt-ttl"] {
        let folders = Folders::new();
        let results = folders.results();
        let elsewhere = folders.all.path().join("elsewhere");
        fs::create_dir(&elsewhere).expect("a folder");
        let place = results.join(planted);
        fs::create_dir_all(place.parent().expect("a folder")).expect("a folder");
        symlink(&elsewhere, &place).expect("a link");
        let run = folders.run();
        bounded(&["bless", "--results", text(&results), text(&run)])
            .expect_code(70)
            .expect_said(&["it is a link, and links are not followed here"]);
        let written = fs::read_dir(&elsewhere).expect("a folder").count();
        assert_eq!(written, 0, "{planted}");
    }
}

#[test]
fn what_a_person_names_may_be_a_link() {
    let folders = Folders::new();
    let (run, link) = (folders.run(), folders.all.path().join("link"));
    symlink(&run, &link).expect("a link");
    let ended = bounded(&["check", text(&link)]);
    assert!(matches!(ended.code, Some(0..=2)), "{ended}");
    let result = folders.all.path().join("linked.json");
    symlink(run.join("result.json"), &result).expect("a link");
    bounded(&["diff", &real("good"), text(&result)]).expect_code(0);
    let scenario = folders.all.path().join("pause-gt-ttl.yml");
    symlink(project().join("scenarios/pause-gt-ttl.yml"), &scenario).expect("a link");
    bounded(&["validate", text(&scenario)]).expect_code(0);
}

#[test]
fn files_by_hand_are_regular_and_bounded() {
    let folders = Folders::new();
    for instead in [
        Instead::Pipe,
        Instead::Sparse,
        Instead::Folder,
        Instead::Socket,
    ] {
        let path = folders.all.path().join("x.yml");
        fs::write(&path, "").expect("a file");
        instead.put(&path, &folders.secret());
        let ended = bounded(&["validate", text(&path)]).expect_code(64);
        expect_refused(&ended, instead, "x.yml");
        let ended = bounded(&["plan", text(&path)]).expect_code(64);
        expect_refused(&ended, instead, "x.yml");
        match path.is_dir() {
            true => fs::remove_dir(&path).expect("a folder"),
            false => fs::remove_file(&path).expect("a file"),
        }
    }
    bounded(&["validate", "/dev/zero"])
        .expect_code(64)
        .expect_said(&["cannot read /dev/zero: it is not a regular file"]);
}
