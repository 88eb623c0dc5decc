/// The braces are a hash tag: a Redis Cluster places a key by what stands
/// between them, so everything about one lock shares a slot and one script may
/// touch all of it.
pub fn lock_key(key: &str) -> String {
    format!("lock:{{{key}}}")
}

/// The counter that the tokens of a lock come from.
pub fn fence_key(key: &str) -> String {
    format!("fence:{{{key}}}")
}

/// The lock, its counter, the line, and what is known of those who stand in
/// it, as the scripts of the line expect them.
pub(super) fn line_keys(key: &str) -> [String; 4] {
    [
        lock_key(key),
        fence_key(key),
        format!("line:{{{key}}}"),
        format!("waiters:{{{key}}}"),
    ]
}

/// The channel on which a release is announced.
pub(super) fn freed_channel(key: &str) -> String {
    format!("freed:{{{key}}}")
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
    }
}
