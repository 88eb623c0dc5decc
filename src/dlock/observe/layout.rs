//! Where the locks lie that a bystander watches.

use crate::dlock::etcd::lock_of;
use crate::model::{KeyTemplate, LockServers};

/// The keys of one kind of lock at a server.
pub(super) enum Layout {
    /// Those of this program.
    Own(KeyTemplate),
    /// Those of another library.
    Foreign(KeyTemplate),
}

const NOTIFICATIONS: &str = "__keyspace@0__:";

impl Layout {
    pub(super) fn new(servers: LockServers, foreign: Option<&KeyTemplate>) -> Layout {
        match foreign {
            None => Layout::Own(KeyTemplate::own(servers)),
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

    /// All of them, for messages.
    pub(super) fn shown(&self) -> String {
        self.template().render("*")
    }

    /// What to subscribe to at a Redis.
    pub(super) fn channels(&self) -> String {
        let template = self.template();
        let (before, after) = (escaped(template.before()), escaped(template.after()));
        format!("{NOTIFICATIONS}{before}*{after}")
    }

    /// What stands in the template's place in the name of a Redis channel.
    pub(super) fn name_in<'a>(&self, channel: &'a str) -> Option<&'a str> {
        let template = self.template();
        channel
            .strip_prefix(NOTIFICATIONS)?
            .strip_prefix(template.before())?
            .strip_suffix(template.after())
    }

    /// The lock that this name stands for.
    pub(super) fn lock<'a>(&self, name: &'a str) -> &'a str {
        match self {
            Layout::Own(_) => untagged(name),
            Layout::Foreign(_) => name,
        }
    }

    /// The keys at a Redis that tell who holds the lock of this name.
    pub(super) fn keys(&self, name: &str) -> Vec<String> {
        let lock = self.template().render(name);
        match self {
            Layout::Own(_) => vec![lock, format!("fence:{name}")],
            // Where its tokens come from is the library's own affair.
            Layout::Foreign(_) => vec![lock],
        }
    }

    /// What every key of them begins with in an etcd.
    pub(super) fn prefix(&self) -> &str {
        self.template().before()
    }

    /// The lock that a key of an etcd belongs to: it is the lock's own key, or a
    /// place in the line below it.
    pub(super) fn lock_of_place(&self, place: &[u8]) -> Option<String> {
        let template = match self {
            Layout::Own(_) => return lock_of(place),
            Layout::Foreign(template) => template,
        };
        let place = std::str::from_utf8(place).ok()?;
        let rest = place.strip_prefix(template.before())?;
        let is_end = |after: &str| after.is_empty() || after.starts_with('/');
        let ends = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
        let mut names = ends.filter(|at| {
            let after = rest[*at..].strip_prefix(template.after());
            after.is_some_and(is_end)
        });
        let name = &rest[..names.next()?];
        (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
    }
}

/// Our keys carry a hash tag; a lock of another library may not.
fn untagged(name: &str) -> &str {
    name.strip_prefix('{')
        .and_then(|name| name.strip_suffix('}'))
        .unwrap_or(name)
}

/// So that a Redis takes every character as itself.
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
        Layout::new(LockServers::Etcd, KeyTemplate::parse(template).as_ref())
    }

    #[test]
    fn own_locks_lie_where_they_always_lay() {
        let redis = Layout::new(LockServers::OneRedis, None);
        assert_eq!(redis.channels(), "__keyspace@0__:lock:*");
        let name = redis.name_in("__keyspace@0__:lock:{account-42}").unwrap();
        assert_eq!(redis.lock(name), "account-42");
        assert_eq!(
            redis.keys(name),
            ["lock:{account-42}", "fence:{account-42}"]
        );
        let etcd = Layout::new(LockServers::Etcd, None);
        assert_eq!(etcd.prefix(), "/locks/");
        let lock = |place: &str| etcd.lock_of_place(place.as_bytes());
        assert_eq!(lock("/locks/a%2Fb/7").as_deref(), Some("a/b"));
        assert_eq!(lock("/locks/a"), None);
    }

    #[test]
    fn a_hash_tag_is_taken_off() {
        assert_eq!(untagged("{account-42}"), "account-42");
        assert_eq!(untagged("{}}"), "}");
        assert_eq!(untagged("plain"), "plain");
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
