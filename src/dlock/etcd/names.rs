//! Where things lie in etcd.

use uuid::Uuid;

/// Every place in every line lies under this.
const LOCKS: &str = "/locks/";

/// What all places in the line for one lock begin with.
pub fn line_prefix(key: &str) -> String {
    format!("{}/", lock_name(key))
}

/// The name of one lock. The server's own lock makes its places below it, too.
pub(in crate::dlock) fn lock_name(key: &str) -> String {
    format!("{LOCKS}{}", escape(key))
}

/// A place in the line for one lock.
pub(super) fn place_key(key: &str, seat: &str) -> String {
    format!("{}{seat}", line_prefix(key))
}

/// Written by one session when it begins, and gone with it.
pub(super) fn session_key() -> String {
    format!("/sessions/{}", Uuid::new_v4())
}

/// Which lock a place belongs to.
pub(in crate::dlock) fn lock_of(place: &[u8]) -> Option<String> {
    let place = std::str::from_utf8(place).ok()?;
    let (escaped, _place) = place.strip_prefix(LOCKS)?.split_once('/')?;
    Some(unescape(escaped))
}

/// Without this, the line of `a` would begin with the same letters as the line
/// of `a/b`, and the one would stand in the other.
fn escape(key: &str) -> String {
    key.replace('%', "%25").replace('/', "%2F")
}

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
