//! The state that all test processes of one run share. `cargo test` runs the tests in one
//! process, `cargo nextest run` runs each in a separate process: turns, servers, images and the
//! state folder work with both.

use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::parent_id;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// A kernel lock cannot be awaited with a deadline, so it is polled.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Returns the process that lives as long as the run: nextest's, or this one.
pub fn leader() -> u32 {
    if std::env::var_os("NEXTEST").is_some() {
        parent_id()
    } else {
        std::process::id()
    }
}

/// Returns the folder of this run, for all of its processes. Folders of earlier runs are removed.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let all = tmp().join("sessions");
        fs::create_dir_all(&all).expect("a folder under target/");
        for entry in fs::read_dir(&all).expect("readable").flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.split('-').next());
            let pid = pid.and_then(|pid| pid.parse().ok());
            if pid.and_then(name_of).is_none_or(|lives| *lives != *name) {
                // Another process may be doing the same.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let own = all.join(name_of(leader()).expect("the leader lives"));
        fs::create_dir_all(&own).expect("a folder under target/");
        own
    })
}

/// Returns the name of the session that this process leads. No other process ever has the same.
fn name_of(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(") ")?;
    let started = fields.split(' ').nth(19)?;
    Some(format!("{pid}-{started}"))
}

/// Lets the first process of the run do something once; the others wait for it.
pub fn once(name: &str, limit: Duration, make: impl FnOnce()) {
    let done = folder().join(format!("{name}.done"));
    let file = folder().join(format!("{name}.lock"));
    let _lock = lock(&file, FlockArg::LockExclusiveNonblock, limit, name);
    if !done.exists() {
        make();
        File::create(done).expect("a file under target/");
    }
}

/// Waits for a lock. It is held until it is dropped, or until this process ends, however it does.
pub fn lock(path: &Path, kind: FlockArg, limit: Duration, what: &str) -> Flock<File> {
    let until = Instant::now() + limit;
    loop {
        if let Some(lock) = try_lock(path, kind) {
            return lock;
        }
        let holder = fs::read_to_string(path).unwrap_or_default();
        assert!(
            Instant::now() < until,
            "waited {limit:?} for {what}; the last to have it alone was {holder:?}"
        );
        std::thread::sleep(ASK_AGAIN);
    }
}

pub fn try_lock(path: &Path, kind: FlockArg) -> Option<Flock<File>> {
    let mut options = File::options();
    let file = options.read(true).append(true).create(true).open(path);
    let file = file.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Flock::lock(file, kind).ok()
}

/// Writes the holder's name into a lock.
pub fn sign(lock: &mut Flock<File>, name: &str) {
    lock.set_len(0).expect("a file under target/");
    lock.write_all(name.as_bytes())
        .expect("a file under target/");
}

/// Returns the folder of locks that outlive a run, so that two runs in one target folder
/// exclude each other too.
pub fn tmp() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}
