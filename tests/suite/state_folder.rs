//! What lies in the state folder says which processes are ended and which containers
//! are removed. So it is ours and nobody else can write it, or the program stops; and
//! what lies there is not believed further than what it names confirms.

use crate::support::*;
use fencepost::cluster::Owner;
use nix::sys::signal::Signal;
use nix::unistd::geteuid;
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use tempfile::TempDir;

/// Has a name on every machine, and owns nothing.
const NOBODY: u32 = 65534;
/// Is on no list of users.
const UNKNOWN: u32 = 64_321;

/// A state folder for a test to break.
struct Kept {
    above: TempDir,
}

impl Kept {
    fn new() -> Kept {
        let above = tempfile::tempdir().expect("a temporary folder");
        let kept = Kept { above };
        for folder in ["", "local", "local-faults"] {
            bounded_io::files::private_folder(&kept.path(folder)).expect("a folder of our own");
        }
        kept
    }

    fn path(&self, inside: &str) -> PathBuf {
        self.above.path().join("fencepost").join(inside)
    }

    fn write(&self, inside: &str, text: &str) {
        let path = self.path(inside);
        let folder = path.parent().expect("in a folder");
        bounded_io::files::private_folder(folder).expect("a folder of our own");
        fs::write(path, text).expect("a file of our own");
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.env("XDG_STATE_HOME", self.above.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        start(self.command(arguments)).wait()
    }

    /// Where no Docker can be reached.
    fn offline(&self, arguments: &[&str]) -> Ended {
        let mut command = self.command(arguments);
        command.env("DOCKER_HOST", "unix:///nonexistent.sock");
        start(command).wait()
    }

    /// Every command that reads or writes state.
    #[track_caller]
    fn is_refused(&self, why: &str) {
        for arguments in [
            &["run", SCENARIO][..],
            &["run", SCENARIO, "--runtime", "local"],
            &["nightly"],
            &["up", "redis"],
            &["down"],
            &["images"],
            &["clean"],
        ] {
            let results = self.above.path().join("results");
            let mut arguments = arguments.to_vec();
            if ["run", "nightly"].contains(&arguments[0]) {
                arguments.extend(["--results", results.to_str().expect("a plain path")]);
            }
            let ended = self.offline(&arguments).expect_code(70);
            ended.expect_said(&["error: cannot use the state folder", why, "XDG_STATE_HOME"]);
        }
        let doctor = self.offline(&["doctor"]).expect_code(69);
        doctor.expect_said(&["MISSING cannot use the state folder", why]);
    }
}

/// Only root can give folders away.
fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        skip("only root can be somebody else");
    }
    is_root
}

/// Certainly dead: the same process, started at another time.
fn dead_owner() -> String {
    let owner = Owner::current().to_label();
    let (process, _) = owner.rsplit_once('/').expect("five parts");
    format!("{process}/1")
}

#[test]
fn a_folder_that_others_can_write_is_refused() {
    let kept = Kept::new();
    let open = |inside: &str, mode| {
        fs::set_permissions(kept.path(inside), Permissions::from_mode(mode)).expect("ours");
    };
    open("", 0o777);
    kept.is_refused("other users may write to the folder");
    open("", 0o700);
    open("local-faults", 0o770);
    kept.is_refused("other users may write to the folder");
    open("local-faults", 0o755);
    kept.offline(&["down"]).expect_code(69);
}

#[test]
fn a_folder_of_another_user_is_refused() {
    if !is_root() {
        return;
    }
    for inside in ["", "local"] {
        let kept = Kept::new();
        chown(kept.path(inside), Some(NOBODY), Some(NOBODY)).expect("root may");
        kept.is_refused("the folder belongs to another user");
    }
}

#[test]
fn a_link_in_its_place_is_refused() {
    let (kept, elsewhere) = (Kept::new(), Kept::new());
    fs::remove_dir(kept.path("local")).expect("an empty folder");
    symlink(elsewhere.path("local"), kept.path("local")).expect("a link");
    kept.is_refused("it is a link");
}

/// As with `sudo` without `-H`.
#[test]
fn the_home_of_another_user_is_refused() {
    if !is_root() {
        return;
    }
    let home = tempfile::tempdir().expect("a temporary folder");
    chown(home.path(), Some(NOBODY), Some(NOBODY)).expect("root may");
    let mut clean = command(["clean"]);
    clean.env("HOME", home.path()).env_remove("XDG_STATE_HOME");
    let ended = start(clean).wait().expect_code(70);
    ended.expect_said(&["cannot use the state folder", "another user", "sudo -H"]);
    assert_eq!(fs::read_dir(home.path()).expect("readable").count(), 0);
}

#[test]
fn without_any_home_the_program_says_so() {
    if !is_root() {
        return;
    }
    for (user, why) in [
        (UNKNOWN, "user 64321 has no home"),
        // As the list of users has it.
        (NOBODY, "/nonexistent/.local/state/fencepost"),
    ] {
        let mut clean = command(["clean"]);
        clean.env_clear().uid(user).gid(user).current_dir("/");
        let ended = start(clean).wait();
        if user == NOBODY && !ended.stderr.contains(why) {
            skip("nobody has a home here");
            continue;
        }
        ended.expect_code(70).expect_said(&["error: cannot", why]);
    }
    let fallback = std::env::temp_dir().join("fencepost");
    assert!(!fallback.exists(), "{} is for anybody", fallback.display());
}

#[test]
fn nothing_is_written_through_a_link() {
    let kept = Kept::new();
    let victim = kept.above.path().join("victim");
    fs::write(&victim, "precious").expect("a file");
    for (lock, arguments) in [
        ("up.lock", ["up", "redis"]),
        ("images.lock", ["images", "--format=human"]),
    ] {
        symlink(&victim, kept.path(lock)).expect("a link");
        let ended = match lock {
            "up.lock" => kept.offline(&arguments),
            _ => {
                let _turn = docker_shared();
                kept.run(&arguments)
            }
        };
        ended.expect_code(70).expect_said(&[lock, "it is a link"]);
        assert_eq!(fs::read(&victim).expect("still there"), b"precious");
    }
}

#[test]
fn whoever_waits_for_the_making_of_images_can_be_interrupted() {
    use nix::fcntl::{Flock, FlockArg};
    let _turn = docker_shared();
    let kept = Kept::new();
    let lock = fs::File::create(kept.path("images.lock")).expect("a file of ours");
    let _held = Flock::lock(lock, FlockArg::LockExclusive).expect("nobody else has it");
    let images = start(kept.command(&["images"]));
    images.await_said("waiting for another run that makes images");
    images.signal(Signal::SIGINT);
    images.wait().expect_code(130);
}

#[test]
fn a_pipe_in_the_place_of_a_lock_holds_nobody_up() {
    let kept = Kept::new();
    let mode = nix::sys::stat::Mode::S_IRWXU;
    nix::unistd::mkfifo(&kept.path("up.lock"), mode).expect("a pipe");
    let ended = kept.offline(&["down"]).expect_code(70);
    ended.expect_said(&["up.lock"]);
}

/// Somebody who is none of ours, killed in the end.
struct Somebody(Child);

impl Somebody {
    fn new() -> Somebody {
        let mut sleep = Command::new("sleep");
        Somebody(sleep.arg("1000").spawn().expect("sleep is here"))
    }

    #[track_caller]
    fn lives(&mut self) {
        assert!(self.0.try_wait().expect("our child").is_none());
    }
}

impl Drop for Somebody {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_planted_pid_file_kills_nobody_and_is_told() {
    let kept = Kept::new();
    let mut somebody = Somebody::new();
    let pid = somebody.0.id();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let started = stat.split_whitespace().nth(21).expect("a start time");
    kept.write("local/evil/owner", &dead_owner());
    kept.write("local/evil/nodes/n/pid", &format!("{pid} {started}\n"));
    let ended = kept.offline(&["clean", "--format", "json"]);
    somebody.lives();
    let told: Value = serde_json::from_str(&ended.expect_code(70).stdout).expect("a document");
    let stuck = told["stuck"][0].as_str().expect("a reason");
    assert!(
        stuck.contains(&format!("process {pid} is left alone")),
        "{told}"
    );
}

/// A journal in which somebody dead owes these.
fn journal(run: &str, debts: &str) -> String {
    let owner = dead_owner();
    format!("{{\"run\":\"{run}\",\"owner\":\"{owner}\"}}\n{{\"id\":1,\"debts\":[{debts}]}}\n")
}

#[test]
fn what_is_left_is_told_and_the_exit_code_says_so() {
    let kept = Kept::new();
    kept.write("local-faults/x.jsonl", "somebody's notes\n");
    let ended = kept.offline(&["clean"]).expect_code(70);
    let said = ["cannot read the journal", "error: cannot remove everything"];
    ended.expect_said(&said);
    let ended = kept.offline(&["clean", "--format", "json"]).expect_code(70);
    let told: Value = serde_json::from_str(&ended.stdout).expect("one document");
    assert_eq!(told["exit_code"], 70);
    assert_eq!(told["stuck"].as_array().map(Vec::len), Some(1), "{told}");
    fs::remove_file(kept.path("local-faults/x.jsonl")).expect("it is still there");
    kept.offline(&["clean"]).expect_code(0);
}

/// A frozen container of somebody else, removed in the end.
struct Database(String);

impl Database {
    fn frozen(name: String) -> Database {
        docker_ok(&[
            "run",
            "-d",
            "--name",
            &name,
            "fencepost/redis:7.0",
            "sleep",
            "1000",
        ]);
        docker_ok(&["pause", &name]);
        Database(name)
    }

    #[track_caller]
    fn is_as_it_was(&self) {
        let state = ["inspect", "-f", "{{.State.Status}}", &self.0];
        assert_eq!(docker_ok(&state), "paused");
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        docker(&["rm", "-f", &self.0]);
    }
}

#[test]
fn a_planted_journal_reaches_no_container_of_somebody_else() {
    let _turn = docker_shared();
    let kept = Kept::new();
    let run = format!("planted-{}", std::process::id());
    let (called_so, elsewhere) = (
        Database::frozen(format!("fencepost-{run}-redis")),
        Database::frozen(format!("somebody-elses-{run}")),
    );
    let outside = format!("/../{}", elsewhere.0);
    let debts = |node: &str| {
        let undo = ["thaw", "continue", "filters", "clock", "connect"];
        let debts = undo.map(|undo| format!("{{\"undo\":\"{undo}\",\"node\":\"{node}\"}}"));
        debts.join(",")
    };
    kept.write("faults/a.jsonl", &journal(&run, &debts("redis")));
    kept.write("faults/b.jsonl", &journal(&run, &debts(&outside)));
    kept.write("faults/c.jsonl", &journal(&outside, &debts("redis")));
    let ended = kept.run(&["clean"]);
    called_so.is_as_it_was();
    elsewhere.is_as_it_was();
    ended.expect_code(70).expect_said(&["is left alone"]);
    // A run goes on all the same.
    let results = fresh_folder("beside-planted");
    let results = results.to_str().expect("a plain path");
    let run = ["run", SCENARIO, "--case", "fenced", "--results", results];
    let ended = kept.run(&run).expect_code(0);
    ended.expect_said(&["could not heal run"]);
    called_so.is_as_it_was();
    elsewhere.is_as_it_was();
}

/// Linux 5.8; before that, options of one mount were those of all.
fn has_a_proc_for_each_mount() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split('.').map(|part| part.parse::<u32>().ok());
    let version = (numbers.next().flatten(), numbers.next().flatten());
    version >= (Some(5), Some(8))
}

/// Where `/proc` shows nobody else's processes, those may still live.
#[test]
fn what_is_hidden_is_not_dead() {
    if !is_root() {
        return;
    }
    if !has_a_proc_for_each_mount() {
        skip("this kernel would hide processes from everybody");
        return;
    }
    let kept = Kept::new();
    let own = |path: &Path| chown(path, Some(NOBODY), Some(NOBODY)).expect("root may");
    // Of this process, which is another user's to the one that sweeps.
    kept.write("local/living/owner", &Owner::current().to_label());
    kept.write("local/dead/owner", &dead_owner());
    for inside in ["", "local", "local-faults", "local/living", "local/dead"] {
        own(&kept.path(inside));
    }
    own(&kept.path("local/living/owner"));
    own(&kept.path("local/dead/owner"));
    fs::set_permissions(kept.above.path(), Permissions::from_mode(0o755)).expect("ours");
    let hide = "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid $0 --regid $0 --clear-groups \"$@\"";
    let clean = kept.command(&["clean"]);
    let mut hidden = Command::new("unshare");
    hidden
        .args(["--mount", "sh", "-c", hide, &NOBODY.to_string()])
        .arg(clean.get_program())
        .args(clean.get_args())
        .env("XDG_STATE_HOME", kept.above.path())
        .env("DOCKER_HOST", "unix:///nonexistent.sock")
        .current_dir("/");
    let ended = start(hidden).wait();
    if ended.stderr.contains("mount") || ended.stderr.contains("unshare") {
        skip("this machine does not let us hide processes");
        return;
    }
    let ended = ended.expect_code(0);
    assert!(kept.path("local/living").exists(), "{ended}");
    // Its pid is there as well, and hidden: nobody can tell that it is another one.
    assert!(kept.path("local/dead").exists(), "{ended}");
}
