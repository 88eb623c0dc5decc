//! An observer inside a simulated Redis: it sees every change as it happens, and makes the same rows of
//! it as one that connects to a real one.

use super::REDIS;
use super::rows::{Next, Observed};
use crate::services::observe::*;

pub struct RedisBystander {
    layout: Layout,
    observed: Observed,
}

impl RedisBystander {
    pub fn new(node: &str, keys: Option<&KeyTemplate>) -> RedisBystander {
        let layout = Layout::new(REDIS.own_keys, keys);
        let observed = Observed::new(node, layout.is_own());
        RedisBystander { layout, observed }
    }

    /// Makes rows of the changes of one command: keys and what was done to them. `text` returns
    /// the text that a key has after it.
    pub fn changed<'a>(
        &mut self,
        changes: impl IntoIterator<Item = (&'a str, &'a str)>,
        text: impl Fn(&str) -> Option<Vec<u8>>,
    ) -> Vec<LockEvent> {
        let at_ns = raw_monotonic_ns();
        let mut rows = Vec::new();
        let mut asked = Vec::new();
        for (key, command) in changes {
            let Some(name) = self.layout.name_of(key) else {
                continue;
            };
            let lock = self.layout.lock(name);
            match self.observed.notified(at_ns, lock, command) {
                Next::Rows(complete) => rows.extend(complete),
                Next::Ask => asked.push(name),
            }
        }
        for name in asked {
            let keys = self.layout.keys(name);
            let owner = text(&keys[0]).map(|owner| readable(&owner));
            let token = keys.get(1).and_then(|counter| text(counter));
            let token = token.and_then(|token| String::from_utf8_lossy(&token).parse().ok());
            let lock = self.layout.lock(name);
            let answered = self.observed.answered(lock, owner, token.map(FencingToken));
            rows.extend(answered);
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_command_are_complete_with_it() {
        let mut bystander = RedisBystander::new("redis", None);
        let mut kinds = |changes: &[(&'static str, &'static str)]| {
            let text = |key: &str| match key {
                "lock:{k}" => Some(b"a".to_vec()),
                "fence:{k}" => Some(b"7".to_vec()),
                _ => None,
            };
            let rows = bystander.changed(changes.iter().copied(), text);
            let words = rows.into_iter().map(|row| {
                let (owner, token) = (row.owner.unwrap(), row.token.unwrap());
                format!("{:?} {} {owner} {token}", row.kind, row.key)
            });
            words.collect::<Vec<String>>()
        };
        let grant = [
            ("fence:{k}", "incrby"),
            ("lock:{k}", "set"),
            ("lock:{k}", "expire"),
        ];
        assert_eq!(kinds(&grant), ["Granted k a 7"]);
        assert_eq!(kinds(&[("lock:{k}", "expire")]), ["Renewed k a 7"]);
        assert_eq!(kinds(&[("lock:{k}", "expired")]), ["Expired k a 7"]);
    }
}
