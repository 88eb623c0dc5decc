//! Names of nodes in a ZooKeeper.

use crate::Env;

/// The parents of everything, which stay.
pub const SESSIONS: &str = "/fencing-lock/sessions";
pub const LOCKS: &str = "/fencing-lock/locks";

/// The length of the name of an attempt, which is a UUID.
const OWNER_LENGTH: usize = 36;

/// Returns the parent of all places in the line for one lock.
pub fn line(key: &str) -> String {
    format!("{LOCKS}/{}", escape(key))
}

/// Returns the beginning of the name of one attempt's place; the ensemble appends a number.
pub(super) fn place_prefix(key: &str, owner: &str) -> String {
    format!("{}/{owner}-", line(key))
}

/// Returns a node that one session makes when it begins, and that is deleted with it.
pub(super) fn session_mark(env: &Env) -> String {
    format!("{SESSIONS}/{}", env.uuid())
}

/// Returns the attempt that a place belongs to, and its number in the line.
pub fn owner_and_number(name: &str) -> Option<(&str, i32)> {
    let (owner, number) = (name.get(..OWNER_LENGTH)?, name.get(OWNER_LENGTH..)?);
    // After 2^31 changes of a line, its numbers begin again below zero.
    let number = number.strip_prefix('-')?.parse().ok()?;
    Some((owner, number))
}

/// Returns the lock that a place belongs to, and the name of the place in its line.
#[cfg(feature = "servers")]
pub fn lock_and_place(path: &str) -> Option<(String, &str)> {
    let rest = path.strip_prefix(LOCKS)?.strip_prefix('/')?;
    let (escaped, place) = rest.split_once('/')?;
    Some((unescape(escaped)?, place))
}

/// Escapes everything but a few harmless characters: a slash would begin another node, and
/// a ZooKeeper refuses dots alone and parts of Unicode.
fn escape(key: &str) -> String {
    let mut escaped = String::new();
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b':' => {
                escaped.push(byte.into());
            }
            _ => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

#[cfg(feature = "servers")]
fn unescape(escaped: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), escaped);
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        if letter == '%' {
            bytes.push(u8::from_str_radix(rest.get(..2)?, 16).ok()?);
            rest = &rest[2..];
        } else {
            bytes.extend(letter.to_string().as_bytes());
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_keys_share_a_line() {
        let keys = [
            "a",
            "a/b",
            "a%2Fb",
            "a%",
            ".",
            "..",
            "ü",
            "A",
            "account 42 / ü",
        ];
        let mut lines: Vec<String> = keys.iter().map(|key| line(key)).collect();
        assert!(lines.iter().all(|line| line.matches('/').count() == 3));
        lines.sort();
        lines.dedup();
        assert_eq!(lines.len(), keys.len());
    }

    #[cfg(feature = "servers")]
    #[test]
    fn a_place_says_which_lock_it_is_for() {
        for key in ["a", "a/b", "a%2Fb", "%25", ".", "account 42 / ü"] {
            let path = format!("{}/place", line(key));
            assert_eq!(lock_and_place(&path), Some((key.to_owned(), "place")));
        }
        assert_eq!(lock_and_place("/fencing-lock/locks/a"), None);
        assert_eq!(lock_and_place("/fencing-lock/locks/%F/b"), None);
        assert_eq!(lock_and_place("/fencing-lock/sessions/1/b"), None);
    }

    #[test]
    fn the_number_of_a_place_is_read_also_when_it_began_again() {
        let owner = Env::default().uuid().to_string();
        for (number, expected) in [
            ("0000000007", 7),
            ("2147483647", i32::MAX),
            ("-2147483648", i32::MIN),
        ] {
            let name = format!("{owner}-{number}");
            assert_eq!(owner_and_number(&name), Some((owner.as_str(), expected)));
        }
        for name in ["", "lock-0000000001", &owner, &format!("{owner}-x")] {
            assert_eq!(owner_and_number(name), None, "{name}");
        }
    }
}
