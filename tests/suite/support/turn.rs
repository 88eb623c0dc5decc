//! Turns on Docker: what measures time or starts containers runs alone; tests
//! that only share the servers run beside each other.

use super::command::{command, start};
use super::docker::{docker, owned_by};
use super::servers::heal_servers;
use std::io::Write;
use std::sync::{Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;

/// On a machine without images, everything is built from Debian's packages.
const IMAGES_DEADLINE: Duration = Duration::from_secs(600);

static TURN: RwLock<()> = RwLock::new(());
/// The programs started in this turn.
static STARTED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Docker for this test alone. When it is over, nothing of any program that it
/// started may be left, and the shared servers are up again.
pub struct Alone(#[expect(dead_code, reason = "held, not read")] RwLockWriteGuard<'static, ()>);

/// Docker together with others who are as gentle.
pub struct Shared(#[expect(dead_code, reason = "held, not read")] RwLockReadGuard<'static, ()>);

/// The machine without anybody's containers being busy, for what needs none.
pub struct Quiet(#[expect(dead_code, reason = "held, not read")] RwLockWriteGuard<'static, ()>);

pub fn machine_alone() -> Quiet {
    Quiet(TURN.write().unwrap_or_else(PoisonError::into_inner))
}

/// None, and a line that says so, where there is no Docker to test with.
pub fn docker_alone() -> Option<Alone> {
    if !needs_docker() {
        return None;
    }
    let turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    images();
    started_pids().clear();
    Some(Alone(turn))
}

/// As `docker_alone`, beside others.
pub fn docker_shared() -> Option<Shared> {
    if !needs_docker() {
        return None;
    }
    let turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    images();
    Some(Shared(turn))
}

/// Says on the real stderr, past the capture of test output, that a test did
/// not run and why.
pub fn skip(reason: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let _ = writeln!(std::io::stderr(), "skipped {test}: {reason}");
}

pub fn started(pid: u32) {
    started_pids().push(pid);
}

impl Drop for Alone {
    fn drop(&mut self) {
        let pids = std::mem::take(&mut *started_pids());
        let left: Vec<String> = pids.into_iter().flat_map(owned_by).collect();
        let healed = heal_servers();
        // A test that failed in the middle has said enough.
        if !std::thread::panicking() {
            healed.unwrap_or_else(|error| panic!("{error}"));
            assert!(left.is_empty(), "left behind: {left:?}");
        }
    }
}

fn started_pids() -> std::sync::MutexGuard<'static, Vec<u32>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn needs_docker() -> bool {
    static REACHABLE: OnceLock<bool> = OnceLock::new();
    let reachable = *REACHABLE.get_or_init(|| {
        let version = std::panic::catch_unwind(|| docker(&["version"]));
        version.is_ok_and(|output| output.status.success())
    });
    if !reachable {
        let in_ci = std::env::var_os("CI").is_some();
        assert!(!in_ci, "this test needs Docker, and `docker version` fails");
        skip("Docker is not reachable");
    }
    reachable
}

/// The first test that needs images has them built.
pub fn images() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        let ended = start(command(["images"])).wait_within(IMAGES_DEADLINE);
        ended.expect_code(0);
    });
}
