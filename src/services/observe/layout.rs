//! The keys of the locks that an observer watches.

use crate::services::KeyTemplate;
use fencing_lock::servers::{lock_of_etcd_place as lock_of, lock_of_redis_name};

pub struct Layout {
    pub template: KeyTemplate,
    /// The locks are this program's, and not those of another library.
    own: bool,
    /// At a server of somebody else's: how the keys of this run begin. Nothing else is watched
    /// there, and nothing is changed.
    within: Option<String>,
}

const NOTIFICATIONS: &str = "__keyspace@0__:";

impl Layout {
    pub fn new(own: &str, foreign: Option<&KeyTemplate>) -> Layout {
        Layout {
            template: foreign.map_or_else(|| KeyTemplate::beginning(own), KeyTemplate::clone),
            own: foreign.is_none(),
            within: None,
        }
    }

    /// Restricts it to keys that begin so.
    pub fn within(mut self, keys: &str) -> Layout {
        self.within = Some(keys.to_owned());
        self
    }

    pub fn is_own(&self) -> bool {
        self.own
    }

    /// Returns whether the server is somebody else's.
    pub fn is_guest(&self) -> bool {
        self.within.is_some()
    }

    /// Returns whether a lock is watched.
    pub fn has(&self, lock: &str) -> bool {
        let within = self.within.as_deref();
        within.is_none_or(|within| lock.starts_with(within))
    }

    fn begins(&self) -> &str {
        self.within.as_deref().unwrap_or_default()
    }

    /// Returns a pattern for all keys, for messages.
    pub fn shown(&self) -> String {
        self.template.render(&format!("{}*", self.begins()))
    }

    /// Returns the channels to subscribe to at a Redis.
    pub fn channels(&self) -> String {
        let KeyTemplate { before, after } = &self.template;
        let (before, after) = (escaped(before), escaped(after));
        let begins = match &self.within {
            // The name of an own lock may be between braces.
            Some(within) if self.own => format!("*{}", escaped(within)),
            _ => escaped(self.begins()),
        };
        format!("{NOTIFICATIONS}{before}{begins}*{after}")
    }

    /// Returns the part of a Redis channel's name that is in the place of the template's `{key}`.
    pub fn name_in<'a>(&self, channel: &'a str) -> Option<&'a str> {
        self.name_of(channel.strip_prefix(NOTIFICATIONS)?)
    }

    /// Returns the same part of a key.
    pub fn name_of<'a>(&self, key: &'a str) -> Option<&'a str> {
        let template = &self.template;
        let name = key
            .strip_prefix(&template.before)?
            .strip_suffix(&template.after)?;
        self.has(self.lock(name)).then_some(name)
    }

    /// Returns the lock of this name.
    pub fn lock<'a>(&self, name: &'a str) -> &'a str {
        match self.own {
            // A lock of another library may have no hash tag.
            true => lock_of_redis_name(name).unwrap_or(name),
            false => name,
        }
    }

    /// Returns the keys at a Redis that say who holds the lock of this name.
    pub fn keys(&self, name: &str) -> Vec<String> {
        let lock = self.template.render(name);
        match self.own {
            true => vec![lock, format!("fence:{name}")],
            // The library itself decides where its tokens come from.
            false => vec![lock],
        }
    }

    /// Returns the prefix of all keys in an etcd.
    pub fn prefix(&self) -> String {
        format!("{}{}", self.template.before, self.begins())
    }

    /// Returns the lock that a key of an etcd belongs to: the key is the lock's own, or a place in
    /// the line below it.
    pub fn lock_of_place(&self, place: &[u8]) -> Option<String> {
        if self.own {
            return lock_of(place);
        }
        let template = &self.template;
        let place = std::str::from_utf8(place).ok()?;
        let rest = place.strip_prefix(&template.before)?;
        let is_end = |after: &str| after.is_empty() || after.starts_with('/');
        let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        let mut names = ends.filter(|at| {
            let after = rest[*at..].strip_prefix(&template.after);
            after.is_some_and(is_end)
        });
        let name = &rest[..names.next()?];
        (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
    }
}

/// Escapes the characters that have a meaning in a pattern of Redis.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(template: &str) -> Layout {
        Layout::new("/locks/", KeyTemplate::parse(template).as_ref())
    }

    #[test]
    fn own_locks_lie_where_they_always_lay() {
        let redis = Layout::new("lock:", None);
        assert_eq!(redis.channels(), "__keyspace@0__:lock:*");
        let name = redis.name_in("__keyspace@0__:lock:{account-42}").unwrap();
        assert_eq!(redis.lock(name), "account-42");
        assert_eq!(
            redis.keys(name),
            ["lock:{account-42}", "fence:{account-42}"]
        );
        let name = redis.name_in("__keyspace@0__:lock:{:}a}:").unwrap();
        assert_eq!((redis.lock(name), redis.lock("plain")), ("}a", "plain"));
        assert_eq!(redis.keys(name), ["lock:{:}a}:", "fence:{:}a}:"]);
        let etcd = Layout::new("/locks/", None);
        assert_eq!(etcd.prefix(), "/locks/");
        let lock = |place: &str| etcd.lock_of_place(place.as_bytes());
        assert_eq!(lock("/locks/a%2Fb/7").as_deref(), Some("a/b"));
        assert_eq!(lock("/locks/a"), None);
    }

    #[test]
    fn a_guest_sees_its_own_keys_alone() {
        let own = Layout::new("lock:", None).within("fencepost-7-");
        assert_eq!(own.channels(), "__keyspace@0__:lock:*fencepost-7-*");
        assert_eq!(own.prefix(), "lock:fencepost-7-");
        assert!(own.has("fencepost-7-a") && !own.has("a"));
        for (name, is_seen) in [
            ("{fencepost-7-a}", true),
            ("fencepost-7-a", true),
            ("{a-fencepost-7-}", false),
        ] {
            let channel = format!("__keyspace@0__:lock:{name}");
            assert_eq!(own.name_in(&channel).is_some(), is_seen, "{name}");
        }
        let theirs = foreign("/l/{key}/m").within("fencepost-7-");
        assert_eq!(theirs.channels(), "__keyspace@0__:/l/fencepost-7-*/m");
        assert_eq!(theirs.prefix(), "/l/fencepost-7-");
        assert_eq!(theirs.shown(), "/l/fencepost-7-*/m");
        let lock = theirs.lock_of_place(b"/l/fencepost-7-a/m/3");
        assert_eq!(lock.as_deref(), Some("fencepost-7-a"));
        assert!(foreign("{key}").has("anything"));
    }

    #[test]
    fn foreign_locks_of_a_redis_lie_where_the_template_says() {
        let layout = foreign("my[1]*{key}:lock");
        assert_eq!(layout.channels(), r"__keyspace@0__:my\[1\]\**:lock");
        let name = layout.name_in("__keyspace@0__:my[1]*{x}:lock").unwrap();
        assert_eq!((name, layout.lock(name)), ("{x}", "{x}"));
        assert_eq!(layout.keys(name), ["my[1]*{x}:lock"]);
        assert_eq!(layout.name_in("__keyspace@0__:my[1]*x:other"), None);
    }

    #[test]
    fn foreign_locks_of_an_etcd_are_a_key_or_places_below_it() {
        let lock = |template: &str, place: &str| foreign(template).lock_of_place(place.as_bytes());
        for place in ["/locks/a", "/locks/a/7", "/locks/a/b/7"] {
            assert_eq!(lock("/locks/{key}", place).as_deref(), Some("a"), "{place}");
        }
        for place in ["/locks/", "/locks//7", "/other/a"] {
            assert_eq!(lock("/locks/{key}", place), None, "{place}");
        }
        let places = ["/l/a-lock", "/l/a-lock/7", "/l/a-lock-lock", "/l/a-locks"];
        let locks = places.map(|place| lock("/l/{key}-lock", place));
        let expected = [Some("a"), Some("a"), Some("a-lock"), None];
        assert_eq!(locks, expected.map(|lock| lock.map(str::to_owned)));
        assert_eq!(lock("/l/{key}/m", "/l/a/m/7").as_deref(), Some("a"));
        assert_eq!(lock("/l/{key}/m", "/l/a/other"), None);
    }
}
