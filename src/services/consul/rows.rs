use crate::services::observe::*;
use fencing_lock::servers::{ConsulEntry, lock_of_consul_key};
use std::collections::BTreeSet;

/// Turns the states of all keys of locks, one after the other, into rows of `locks.jsonl`.
pub(super) struct Keys {
    node: String,
    layout: Layout,
    by_name: BTreeMap<String, ConsulEntry>,
}

impl Keys {
    pub(super) fn new(node: &str, layout: Layout) -> Keys {
        Keys {
            node: node.to_owned(),
            layout,
            by_name: BTreeMap::new(),
        }
    }

    pub(super) fn prefix(&self) -> String {
        self.layout.prefix()
    }

    pub(super) fn begin(&mut self, entries: &[ConsulEntry]) {
        let named = entries.iter().map(|now| (now.name.clone(), now.clone()));
        self.by_name = named.collect();
    }

    /// Returns the sessions whose holds are over in this state.
    pub(super) fn ending(&self, entries: &[ConsulEntry]) -> BTreeSet<String> {
        let now: BTreeMap<&str, &ConsulEntry> = by_name(entries);
        let before = self.by_name.values();
        let over = before.filter(|before| !goes_on(before, now.get(before.name.as_str()).copied()));
        over.filter_map(|before| before.session.clone()).collect()
    }

    /// Returns what happened from the last state to this one. The sessions in `gone` are over.
    pub(super) fn changed(
        &mut self,
        at_ns: u64,
        entries: &[ConsulEntry],
        gone: &BTreeSet<String>,
    ) -> Vec<LockEvent> {
        let now = by_name(entries);
        let names: BTreeSet<&str> = self.by_name.keys().map(String::as_str).collect();
        let mut rows = Vec::new();
        for name in names
            .iter()
            .chain(now.keys().filter(|n| !names.contains(*n)))
        {
            let before = self.by_name.get(*name);
            self.change(at_ns, before, now.get(name).copied(), gone, &mut rows);
        }
        self.begin(entries);
        rows
    }

    fn change(
        &self,
        at_ns: u64,
        before: Option<&ConsulEntry>,
        now: Option<&ConsulEntry>,
        gone: &BTreeSet<String>,
        rows: &mut Vec<LockEvent>,
    ) {
        let held = |entry: Option<&ConsulEntry>| entry.is_some_and(|it| it.session.is_some());
        let Some(any) = now.or(before) else { return };
        let Some(key) = self.layout.lock_of_consul_name(&any.name) else {
            return;
        };
        let row = |kind, of: Option<&ConsulEntry>| LockEvent {
            at_ns,
            node: self.node.clone(),
            key: key.clone(),
            kind,
            owner: of.map(|entry| readable(&entry.value)),
            // The library itself decides where its tokens come from.
            token: of
                .filter(|_| self.layout.is_own())
                .map(|entry| FencingToken(entry.modify_index)),
        };
        if before.is_some_and(|before| goes_on(before, now)) {
            return;
        }
        if let Some(before) = before.filter(|before| held(Some(before))) {
            let is_gone = before.session.as_ref().is_some_and(|id| gone.contains(id));
            rows.push(match is_gone {
                true => row(LockEventKind::Expired, Some(before)),
                false => row(LockEventKind::Released, Some(before)),
            });
        }
        // A key that was made again counts from its beginning.
        let is_same =
            |before: &&ConsulEntry| now.is_some_and(|now| now.create_index == before.create_index);
        let counted = before.filter(is_same).map_or(0, |it| it.lock_index);
        let grants = now.map_or(0, |now| now.lock_index.saturating_sub(counted));
        let unseen = grants.saturating_sub(u64::from(held(now)));
        for _ in 0..unseen {
            rows.push(row(LockEventKind::Granted, None));
            rows.push(row(LockEventKind::Released, None));
        }
        if held(now) {
            rows.push(row(LockEventKind::Granted, now));
        }
    }
}

fn by_name(entries: &[ConsulEntry]) -> BTreeMap<&str, &ConsulEntry> {
    let named = entries.iter().map(|entry| (entry.name.as_str(), entry));
    named.collect()
}

/// Returns whether one hold, or nobody's, lasts from one state to the next.
fn goes_on(before: &ConsulEntry, now: Option<&ConsulEntry>) -> bool {
    now.is_some_and(|now| {
        now.create_index == before.create_index
            && now.lock_index == before.lock_index
            && now.session == before.session
    })
}

impl Layout {
    /// Returns the lock that a key of a Consul belongs to.
    fn lock_of_consul_name(&self, name: &str) -> Option<String> {
        if self.is_own() {
            return lock_of_consul_key(name);
        }
        let rest = name.strip_prefix(&self.template.before)?;
        let lock = rest.strip_suffix(&self.template.after)?;
        (!lock.is_empty()).then(|| lock.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::joined;

    /// The key `k`: the index of its making, its grants, its last change, and its holder.
    fn entry(create: u64, grants: u64, modify: u64, holder: Option<&str>) -> ConsulEntry {
        ConsulEntry {
            name: "locks/k".to_owned(),
            session: holder.map(|holder| format!("session of {holder}")),
            value: holder.unwrap_or_default().as_bytes().to_vec(),
            lock_index: grants,
            create_index: create,
            modify_index: modify,
        }
    }

    fn told(before: Option<ConsulEntry>, now: Option<ConsulEntry>, gone: &[&str]) -> String {
        let mut keys = Keys::new("consul", Layout::new("locks/", None));
        let all = |entry: Option<ConsulEntry>| Vec::from_iter(entry);
        keys.begin(&all(before));
        let now = all(now);
        let gone = gone.iter().map(|it| format!("session of {it}")).collect();
        assert!(keys.ending(&now).is_superset(&gone));
        let rows = keys.changed(1, &now, &gone);
        let words = |row: &LockEvent| {
            let owner = row.owner.as_deref().unwrap_or("?");
            format!("{:?} {owner} {}", row.kind, row.token.map_or(0, |it| it.0))
        };
        joined(rows.iter().map(words), ", ")
    }

    #[test]
    fn what_happened_between_two_states_is_told_as_far_as_it_is_known() {
        let (a, b) = (Some("a"), Some("b"));
        let first = || Some(entry(5, 1, 5, a));
        let free = || Some(entry(5, 1, 6, None));
        for (before, now, gone, rows) in [
            (None, first(), &[][..], "Granted a 5"),
            (first(), first(), &[], ""),
            (first(), free(), &[], "Released a 5"),
            (first(), free(), &["a"], "Expired a 5"),
            (free(), Some(entry(5, 2, 7, b)), &[], "Granted b 7"),
            (
                first(),
                Some(entry(5, 2, 7, b)),
                &[],
                "Released a 5, Granted b 7",
            ),
            // The same session may hold it again, for another owner.
            (
                first(),
                Some(entry(5, 2, 7, a)),
                &[],
                "Released a 5, Granted a 7",
            ),
            (
                first(),
                Some(entry(5, 3, 9, b)),
                &["a"],
                "Expired a 5, Granted ? 0, Released ? 0, Granted b 9",
            ),
            (
                free(),
                Some(entry(5, 2, 8, None)),
                &[],
                "Granted ? 0, Released ? 0",
            ),
            // Somebody deleted the key, and made it again.
            (first(), None, &[], "Released a 5"),
            (
                first(),
                Some(entry(8, 1, 8, b)),
                &[],
                "Released a 5, Granted b 8",
            ),
        ] {
            assert_eq!(told(before.clone(), now.clone(), gone), rows);
        }
    }
}
