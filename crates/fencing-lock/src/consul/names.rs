//! Names of keys in a Consul.

/// The prefix of all locks.
pub(super) const LOCKS: &str = "locks/";

/// Returns the name of a lock's key. Everything but letters, digits, `-` and `_` is escaped:
/// the server would take `//` and `..` in the path of a request for another path.
pub(super) fn lock_name(key: &str) -> String {
    let mut name = LOCKS.to_owned();
    for byte in key.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            _ => name.push_str(&format!("%{byte:02X}")),
        }
    }
    name
}

/// Returns the path of a request for a lock's key, whose name is escaped once more.
pub(super) fn path_of(name: &str) -> String {
    format!("/v1/kv/{}", name.replace('%', "%25"))
}

#[cfg(feature = "servers")]
/// Returns the lock that a key belongs to.
pub fn lock_of(name: &str) -> Option<String> {
    let mut rest = name.strip_prefix(LOCKS)?.bytes();
    let mut key = Vec::new();
    while let Some(byte) = rest.next() {
        key.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(key).ok().filter(|key| !key.is_empty())
}

#[cfg(all(test, feature = "servers"))]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_which_lock_it_is_for_and_needs_no_other_path() {
        for key in ["a", "a/b", "a//b", "..", "%2F", "account 42 / ü", "a?b#c&d"] {
            let name = lock_name(key);
            assert_eq!(lock_of(&name).as_deref(), Some(key), "{name}");
            let path = path_of(&name);
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/%-_".contains(&byte);
            assert!(path.bytes().all(plain), "{path}");
        }
        assert_eq!(lock_name("account-42"), "locks/account-42");
        assert_eq!(path_of("locks/%2F"), "/v1/kv/locks/%252F");
        for strange in ["locks/", "other/a", "locks/%2", "locks/%zz", "locks/%ff"] {
            assert_eq!(lock_of(strange), None, "{strange}");
        }
    }
}
