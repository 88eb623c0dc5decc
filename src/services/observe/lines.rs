use super::*;

/// Turns what a server reports about places in lines into rows of `locks.jsonl`: an etcd, or a
/// ZooKeeper.
///
/// The first in a line holds its lock, so a grant is when an owner becomes the first. Arrivals
/// behind others, and departures before the turn, are rows as well: from them the judge knows the
/// order of a line.
pub struct Lines {
    node: String,
    /// The lines by the key of the lock; each in the order in which its places were made.
    lines: HashMap<String, BTreeMap<Age, LockPlace>>,
}

/// The create revision of a place, or its number in the line; places that one transaction made
/// share a revision.
type Age = (i64, Vec<u8>);

/// One place in a line, as the server reports it.
#[derive(Clone, Debug)]
pub struct LockPlace {
    pub owner: Option<String>,
    pub token: Option<FencingToken>,
    /// What ends the place if nobody deletes it: a lease, or a session.
    pub lease: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Deleted,
    /// Its lease is gone, so nobody had to delete it.
    WithItsLease,
}

impl Lines {
    pub fn new(node: &str) -> Lines {
        Lines {
            node: node.to_owned(),
            lines: HashMap::new(),
        }
    }

    /// Adds a place that was made, or written again. A place that is written again before its turn
    /// makes no row.
    pub fn joined(
        &mut self,
        at_ns: u64,
        lock: &str,
        age: Age,
        standing: LockPlace,
    ) -> Option<LockEvent> {
        let line = self.lines.entry(lock.to_owned()).or_default();
        let was_empty = line.is_empty();
        let is_holder = line.keys().next() == Some(&age);
        let (owner, token) = (standing.owner.clone(), standing.token);
        let kind = match line.insert(age, standing) {
            None if was_empty => LockEventKind::Granted,
            None => LockEventKind::Queued,
            Some(_) if !is_holder => return None,
            Some(before) if before.owner == owner => LockEventKind::Renewed,
            // An owner that writes over a holder's key takes the lock.
            Some(_) => LockEventKind::Granted,
        };
        Some(self.row(at_ns, lock, kind, owner, token))
    }

    /// Returns the lease of a place, if its owner holds the lock.
    pub fn lease_of_holder(&self, lock: &str, place: &[u8]) -> Option<i64> {
        let ((_, first), standing) = self.lines.get(lock)?.first_key_value()?;
        (first == place).then_some(standing.lease)
    }

    pub fn left(&mut self, at_ns: u64, lock: &str, place: &[u8], end: End) -> Vec<LockEvent> {
        let Some(line) = self.lines.get_mut(lock) else {
            return Vec::new();
        };
        let Some(age) = line.keys().find(|age| age.1 == place).cloned() else {
            return Vec::new();
        };
        let was_first = line.keys().next() == Some(&age);
        let Some(gone) = line.remove(&age) else {
            return Vec::new();
        };
        if !was_first {
            return vec![self.row(at_ns, lock, LockEventKind::Left, gone.owner, gone.token)];
        }
        let next = line.values().next().cloned();
        if next.is_none() {
            self.lines.remove(lock);
        }
        let kind = match end {
            End::Deleted => LockEventKind::Released,
            End::WithItsLease => LockEventKind::Expired,
        };
        let mut rows = vec![self.row(at_ns, lock, kind, gone.owner, gone.token)];
        if let Some(LockPlace { owner, token, .. }) = next {
            rows.push(self.row(at_ns, lock, LockEventKind::Granted, owner, token));
        }
        rows
    }

    fn row(
        &self,
        at_ns: u64,
        lock: &str,
        kind: LockEventKind,
        owner: Option<String>,
        token: Option<FencingToken>,
    ) -> LockEvent {
        LockEvent {
            at_ns,
            node: self.node.clone(),
            key: lock.to_owned(),
            kind,
            owner,
            token,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::joined;
    use LockEventKind::{Granted, Queued, Renewed};

    fn join(lines: &mut Lines, lock: &str, revision: i64, owner: &str) -> Vec<LockEvent> {
        let standing = LockPlace {
            owner: Some(owner.to_owned()),
            token: Some(FencingToken(revision as u64)),
            lease: 7,
        };
        let age = (revision, owner.as_bytes().to_vec());
        lines.joined(1, lock, age, standing).into_iter().collect()
    }

    fn told(rows: &[LockEvent]) -> String {
        let words = |row: &LockEvent| {
            let owner = row.owner.as_deref().unwrap_or("-");
            format!("{:?} {owner} {}", row.kind, row.token.unwrap())
        };
        joined(rows.iter().map(words), ", ")
    }

    #[test]
    fn a_lock_goes_from_hand_to_hand_in_the_order_of_the_line() {
        let mut lines = Lines::new("etcd-1");
        assert_eq!(told(&join(&mut lines, "k", 3, "a")), "Granted a 3");
        assert_eq!(told(&join(&mut lines, "k", 5, "c")), "Queued c 5");
        // The state that was read first may already contain what the watch reports later.
        assert_eq!(told(&join(&mut lines, "k", 4, "b")), "Queued b 4");
        for (place, end, rows) in [
            (b"a", End::Deleted, "Released a 3, Granted b 4"),
            (b"b", End::WithItsLease, "Expired b 4, Granted c 5"),
            (b"c", End::Deleted, "Released c 5"),
        ] {
            assert_eq!(told(&lines.left(2, "k", place, end)), rows);
        }
        assert!(lines.lines.is_empty(), "a line without places is forgotten");
    }

    #[test]
    fn leaving_before_ones_turn_changes_nothing_for_the_holder() {
        let mut lines = Lines::new("etcd-1");
        join(&mut lines, "k", 3, "a");
        join(&mut lines, "k", 4, "b");
        join(&mut lines, "other", 5, "c");
        assert_eq!(lines.lease_of_holder("k", b"a"), Some(7));
        assert_eq!(lines.lease_of_holder("k", b"b"), None);
        for (place, rows) in [
            (&b"b"[..], "Left b 4"),
            (b"nobody", ""),
            (b"a", "Released a 3"),
        ] {
            assert_eq!(told(&lines.left(2, "k", place, End::Deleted)), rows);
        }
    }

    #[test]
    fn writing_over_a_key_renews_it_or_takes_it() {
        let mut lines = Lines::new("etcd-1");
        let mut write = |revision: i64, owner: &str| {
            let standing = LockPlace {
                owner: Some(owner.to_owned()),
                token: Some(FencingToken(1)),
                lease: 7,
            };
            let place = (revision, format!("place-{revision}").into_bytes());
            let row = lines.joined(1, "k", place, standing);
            row.map(|row| (row.kind, row.owner.unwrap()))
        };
        let by = |kind, owner: &str| Some((kind, owner.to_owned()));
        assert_eq!(write(3, "a"), by(Granted, "a"));
        assert_eq!(write(3, "a"), by(Renewed, "a"));
        assert_eq!(write(3, "thief"), by(Granted, "thief"));
        assert_eq!(write(4, "b"), by(Queued, "b"));
        assert_eq!(write(4, "b"), None);
    }
}
