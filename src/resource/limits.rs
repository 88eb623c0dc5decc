//! The limits of the resource. They bound everything that it holds in memory or may lose in a
//! crash.

use std::time::Duration;

pub const MAX_KEY_BYTES: usize = 256;
pub const MAX_OWNER_BYTES: usize = 128;
pub const MAX_BODY_BYTES: usize = 64 * 1024;

/// The size of all keys and values, and of what is known about them. A write that would need
/// more is refused with 507 and is not in the log; one that needs no more than what it replaces
/// always fits.
pub const MAX_HELD_BYTES: usize = 256 * 1024 * 1024;

/// The longest possible line of a row: JSON needs six bytes for a control character and at most
/// four for a byte that is not text; the rest is the key, the owner and numbers, and in the S3 role
/// metadata of up to 2 KiB and a condition of up to 1 KiB.
pub(super) const MAX_ROW_BYTES: usize = 6 * MAX_BODY_BYTES + 64 * 1024;

/// The longest answer that a client accepts, other than a log.
pub(super) const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// The longest log that a client reads into memory.
pub(super) const MAX_LOG_BYTES: usize = 1024 * 1024 * 1024;

/// The most bytes that are written between two syncs, and so the most that a crash can tear.
pub(super) const MAX_BATCH_BYTES: usize = 1024 * 1024;
/// The most reads and writes that share one sync.
pub(super) const MAX_BATCH_COMMANDS: usize = 256;
/// The most reads and writes that wait for the commit thread.
pub(super) const QUEUE_COMMANDS: usize = 512;
/// The most writes whose bodies are read or wait to be decided; others wait in their sockets.
/// They are counted apart from reads, which a slow body cannot hold up.
pub(super) const MAX_WRITES: usize = 512;

/// A client that has not sent its body by then is refused.
pub(super) const BODY_DEADLINE: Duration = Duration::from_secs(10);
/// If the disk has not synced by then, the outcome stays unknown to the client.
pub(super) const COMMIT_DEADLINE: Duration = Duration::from_secs(30);

const _: () = assert!(MAX_ROW_BYTES <= MAX_BATCH_BYTES);
const _: () = assert!(MAX_ROW_BYTES <= MAX_ANSWER_BYTES);

/// Returns what is wrong with a key, and what would be right.
pub(super) fn key_problem(key: &str) -> Option<String> {
    if key.is_empty() {
        return Some("the key is empty: write to /r/{key}, for example /r/account-42".into());
    }
    if key.len() > MAX_KEY_BYTES {
        return Some(format!(
            "the key has {} bytes: at most {MAX_KEY_BYTES} are allowed",
            key.len()
        ));
    }
    if key.chars().any(char::is_control) {
        return Some("the key holds a control character: use printable characters only".into());
    }
    // Many HTTP clients remove these and would ask for another path.
    if key == "." || key == ".." {
        return Some("the key must not be '.' or '..': HTTP clients fold them away".into());
    }
    None
}
