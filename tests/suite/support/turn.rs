//! Turns on the machine and its Docker. Most tests run beside each other, as many as the
//! machine can bear. A test runs alone if it measures time, counts everything that exists,
//! leaves something behind for others to find, or stops a server that all share.
//!
//! The locks are files, so that turns work for all processes of a run.

use super::command::{command, start};
use super::docker::{docker, owned_by};
use super::servers::heal_servers;
use super::session::{self, lock, sign, try_lock};
use nix::fcntl::{Flock, FlockArg};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::thread::{self, available_parallelism};
use std::time::{Duration, Instant};

/// On a machine without images, everything is built from Debian's packages.
const IMAGES_DEADLINE: Duration = Duration::from_secs(600);
/// This is longer than all tests before this one together.
const TURN_DEADLINE: Duration = Duration::from_secs(3600);
/// Several turns fit on a core, because runs wait most of the time.
const TURNS_OF_A_CORE: usize = 2;

thread_local! {
    /// The programs started in this turn. libtest gives each test its own thread.
    static STARTED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    static HAS_A_TURN: Cell<bool> = const { Cell::new(false) };
}

/// A turn of one test. At its end, nothing may be left of any program that the test started.
pub struct Turn {
    kind: Kind,
    _turn: Flock<File>,
    _slot: Option<Flock<File>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// At the end, the shared servers are started again.
    Alone,
    Shared,
}

/// Takes Docker for this test alone.
pub fn docker_alone() -> Turn {
    needs_docker();
    let turn = machine_alone();
    images();
    turn
}

/// Takes Docker beside other tests that also disturb nobody.
pub fn docker_shared() -> Turn {
    needs_docker();
    let turn = machine_shared();
    images();
    turn
}

/// Takes a turn for a test that needs no Docker.
pub fn machine_shared() -> Turn {
    take(Kind::Shared)
}

/// Takes the machine for this test alone, without Docker.
pub fn machine_alone() -> Turn {
    take(Kind::Alone)
}

fn take(kind: Kind) -> Turn {
    let has_one = HAS_A_TURN.replace(true);
    assert!(
        !has_one,
        "this test has a turn already: it would wait for itself"
    );
    STARTED.take();
    let slot = (kind == Kind::Shared).then(slot);
    let file = |name: &str| session::tmp().join(name);
    let exclusive = FlockArg::LockExclusiveNonblock;
    // A test that waits for a turn alone holds the gate, so that no new test gets past.
    let gate = lock(
        &file("gate.lock"),
        exclusive,
        TURN_DEADLINE,
        "the gate to Docker",
    );
    let arg = match kind {
        Kind::Alone => exclusive,
        Kind::Shared => FlockArg::LockSharedNonblock,
    };
    let mut turn = lock(&file("turn.lock"), arg, TURN_DEADLINE, "a turn on Docker");
    drop(gate);
    if kind == Kind::Alone {
        sign(&mut turn, &test_name());
    }
    Turn {
        kind,
        _turn: turn,
        _slot: slot,
    }
}

/// Takes one of the slots of tests that may run beside each other.
fn slot() -> Flock<File> {
    let slots = TURNS_OF_A_CORE * available_parallelism().map_or(1, usize::from);
    let until = Instant::now() + TURN_DEADLINE;
    loop {
        let free = (0..slots).find_map(|number| {
            let file = session::tmp().join(format!("slot-{number}.lock"));
            try_lock(&file, FlockArg::LockExclusiveNonblock)
        });
        if let Some(free) = free {
            return free;
        }
        assert!(Instant::now() < until, "none of {slots} slots became free");
        thread::sleep(Duration::from_millis(20));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        HAS_A_TURN.set(false);
        let left: Vec<String> = STARTED.take().into_iter().flat_map(owned_by).collect();
        let healed = match self.kind {
            Kind::Alone => heal_servers(),
            Kind::Shared => Ok(()),
        };
        // A test that failed in the middle has reported enough.
        if !thread::panicking() {
            healed.unwrap_or_else(|error| panic!("{error}"));
            assert!(left.is_empty(), "left behind: {left:?}");
        }
    }
}

pub fn started(pid: u32) {
    STARTED.with_borrow_mut(|started| started.push(pid));
}

/// Reports on the real stderr, past the capture of test output, that a test did not run and why.
pub fn skip(reason: &str) {
    let _ = writeln!(std::io::stderr(), "skipped {}: {reason}", test_name());
}

fn test_name() -> String {
    thread::current().name().unwrap_or("a test").to_owned()
}

/// Panics without Docker: a test that cannot run has not passed.
#[track_caller]
pub fn needs_docker() {
    static REACHABLE: OnceLock<bool> = OnceLock::new();
    let reachable = *REACHABLE.get_or_init(|| {
        let version = std::panic::catch_unwind(|| docker(&["version"]));
        version.is_ok_and(|output| output.status.success())
    });
    assert!(
        reachable,
        "this test needs Docker, and `docker version` fails: start the Docker Engine, \
         or run `just test-without-docker`"
    );
}

/// Builds the images, once for all tests.
pub fn images() {
    static BUILT: OnceLock<()> = OnceLock::new();
    BUILT.get_or_init(|| {
        session::once("images", IMAGES_DEADLINE, || {
            let ended = start(command(["images"])).wait_within(IMAGES_DEADLINE);
            ended.expect_code(0);
        });
    });
}
