/// Returns the key of the lock. The braces are a hash tag: a Redis Cluster places a key
/// by the text between them, so all keys of one lock share a slot and one script may use
/// all of them.
pub fn lock_key(key: &str) -> String {
    tagged("lock", key)
}

/// Returns the lock that a key belongs to, whose name follows the kind and a colon; `None` if
/// it is not one of this library.
#[cfg(feature = "servers")]
pub fn lock_of(name: &str) -> Option<&str> {
    let tag = name.strip_prefix('{')?;
    let begins_with_brace = || tag.strip_prefix(':')?.strip_suffix("}:");
    tag.strip_suffix('}').or_else(begins_with_brace)
}

/// Returns the key of the counter that the tokens of a lock come from.
pub fn fence_key(key: &str) -> String {
    tagged("fence", key)
}

/// Returns the key of the mark that a try was given up.
pub fn gone_key(key: &str, owner: &str) -> String {
    [&tagged("gone", key), ":", owner].concat()
}

/// Returns the keys of the lock, its counter, its line and the data of its waiters, in
/// the order that the line's scripts expect.
pub(super) fn line_keys(key: &str) -> [String; 4] {
    [
        lock_key(key),
        fence_key(key),
        tagged("line", key),
        tagged("waiters", key),
    ]
}

/// Returns the key of the mark that a full line was looked through a moment ago.
pub(super) fn swept_key(key: &str) -> String {
    tagged("swept", key)
}

/// Returns the channel on which a release is announced.
pub(super) fn freed_channel(key: &str) -> String {
    tagged("freed", key)
}

fn tagged(kind: &str, key: &str) -> String {
    if key.starts_with('}') {
        // The tag would be empty, and an empty one does not count. No other key has a
        // name that ends like this.
        return [kind, ":{:", key, "}:"].concat();
    }
    [kind, ":{", key, "}"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_about_a_lock_shares_a_slot() {
        assert_eq!(
            line_keys("account-42"),
            [
                "lock:{account-42}",
                "fence:{account-42}",
                "line:{account-42}",
                "waiters:{account-42}"
            ]
        );
        assert_eq!(freed_channel("account-42"), "freed:{account-42}");
        assert_eq!(gone_key("account-42", "me"), "gone:{account-42}:me");
    }

    #[test]
    fn every_key_has_a_tag_that_counts() {
        for key in ["a", "}", "}a", "a}b", "{", "{}", ":}a}:"] {
            let names = [lock_key(key), fence_key(key), gone_key(key, "me")];
            let tags = names.map(|name| {
                let (_, rest) = name.split_once('{').unwrap();
                rest.split_once('}').unwrap().0.to_owned()
            });
            assert!(!tags[0].is_empty(), "{key}");
            assert!(tags.iter().all(|tag| *tag == tags[0]), "{key}: {tags:?}");
        }
        assert_ne!(lock_key("}a"), lock_key(":}a"));
    }

    #[cfg(feature = "servers")]
    #[test]
    fn a_key_says_which_lock_it_belongs_to() {
        for key in ["a", "}", "}a", "a}b", "{", "{}", ":}a}:", ":"] {
            let name = lock_key(key);
            assert_eq!(lock_of(name.strip_prefix("lock:").unwrap()), Some(key));
        }
        assert_eq!(lock_of("plain"), None);
    }
}
