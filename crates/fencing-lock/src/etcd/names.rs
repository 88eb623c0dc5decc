//! Names of keys in etcd.

use crate::Env;

/// The prefix of all places in all lines.
const LOCKS: &str = "/locks/";

/// Returns the prefix of all places in the line for one lock.
pub fn line_prefix(key: &str) -> String {
    format!("{}/", lock_name(key))
}

/// Returns the name of one lock. The server's own lock makes its places below it, too.
pub(crate) fn lock_name(key: &str) -> String {
    format!("{LOCKS}{}", escape(key))
}

/// Returns the key of a place in the line for one lock.
pub(super) fn place_key(key: &str, seat: &str) -> String {
    format!("{}{seat}", line_prefix(key))
}

/// Returns a key that one session writes when it begins, and that is deleted with the
/// session.
pub(super) fn session_key(env: &Env) -> String {
    format!("/sessions/{}", env.uuid())
}

#[cfg(feature = "servers")]
/// Returns the lock that a place belongs to.
pub fn lock_of(place: &[u8]) -> Option<String> {
    let place = std::str::from_utf8(place).ok()?;
    let (escaped, _place) = place.strip_prefix(LOCKS)?.split_once('/')?;
    Some(unescape(escaped))
}

/// Escapes slashes. Otherwise the prefix of the line of `a` would also match the line of
/// `a/b`.
fn escape(key: &str) -> String {
    key.replace('%', "%25").replace('/', "%2F")
}

#[cfg(feature = "servers")]
fn unescape(escaped: &str) -> String {
    escaped.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_lies_within_another() {
        let prefixes = ["a", "a/b", "a%2Fb", "a%", "a/", "/"].map(line_prefix);
        for (n, one) in prefixes.iter().enumerate() {
            for (m, other) in prefixes.iter().enumerate() {
                assert!(n == m || !one.starts_with(other), "{one} and {other}");
            }
        }
    }

    #[test]
    fn a_place_says_which_lock_it_is_for() {
        for key in ["a", "a/b", "a%2Fb", "%25", "account 42 / ü"] {
            let place = place_key(key, "seat");
            assert_eq!(lock_of(place.as_bytes()).as_deref(), Some(key));
        }
        assert_eq!(lock_of(b"/locks/a"), None);
        assert_eq!(lock_of(b"/sessions/1"), None);
        assert_eq!(lock_of(b"/locks/\xff/b"), None);
    }
}
