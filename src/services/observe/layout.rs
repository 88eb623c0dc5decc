//! The keys of the locks that an observer watches.

use crate::services::KeyTemplate;
use fencing_lock::servers::{lock_of_etcd_place as lock_of, lock_of_redis_name};

pub enum Layout {
    /// The locks of this program.
    Own(KeyTemplate),
    /// The locks of another library.
    Foreign(KeyTemplate),
}

const NOTIFICATIONS: &str = "__keyspace@0__:";

impl Layout {
    pub fn new(own: &str, foreign: Option<&KeyTemplate>) -> Layout {
        match foreign {
            None => Layout::Own(KeyTemplate::beginning(own)),
            Some(template) => Layout::Foreign(template.clone()),
        }
    }

    fn template(&self) -> &KeyTemplate {
        match self {
            Layout::Own(template) | Layout::Foreign(template) => template,
        }
    }

    pub(super) fn is_own(&self) -> bool {
        matches!(self, Layout::Own(_))
    }

    /// Returns a pattern for all keys, for messages.
    pub fn shown(&self) -> String {
        self.template().render("*")
    }

    /// Returns the channels to subscribe to at a Redis.
    pub(super) fn channels(&self) -> String {
        let template = self.template();
        let (before, after) = (escaped(&template.before), escaped(&template.after));
        format!("{NOTIFICATIONS}{before}*{after}")
    }

    /// Returns the part of a Redis channel's name that is in the place of the template's `{key}`.
    pub(super) fn name_in<'a>(&self, channel: &'a str) -> Option<&'a str> {
        let template = self.template();
        channel
            .strip_prefix(NOTIFICATIONS)?
            .strip_prefix(&template.before)?
            .strip_suffix(&template.after)
    }

    /// Returns the lock of this name.
    pub(super) fn lock<'a>(&self, name: &'a str) -> &'a str {
        match self {
            // A lock of another library may have no hash tag.
            Layout::Own(_) => lock_of_redis_name(name).unwrap_or(name),
            Layout::Foreign(_) => name,
        }
    }

    /// Returns the keys at a Redis that say who holds the lock of this name.
    pub(super) fn keys(&self, name: &str) -> Vec<String> {
        let lock = self.template().render(name);
        match self {
            Layout::Own(_) => vec![lock, format!("fence:{name}")],
            // The library itself decides where its tokens come from.
            Layout::Foreign(_) => vec![lock],
        }
    }

    /// Returns the prefix of all keys in an etcd.
    pub(super) fn prefix(&self) -> &str {
        &self.template().before
    }

    /// Returns the lock that a key of an etcd belongs to: the key is the lock's own, or a place in
    /// the line below it.
    pub(super) fn lock_of_place(&self, place: &[u8]) -> Option<String> {
        let template = match self {
            Layout::Own(_) => return lock_of(place),
            Layout::Foreign(template) => template,
        };
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
