//! Turns what sessions of a database report about their locks into rows of `locks.jsonl`.

use super::*;
use serde::Deserialize;

/// A grant or a release of a lock, as the session of its holder reports it.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum SessionChange {
    Granted {
        key: String,
        owner: String,
        token: u64,
    },
    Released {
        key: String,
        owner: String,
    },
}

/// The locks that sessions hold, by key. A session has the number `S` at its server.
pub struct SessionHolds<S> {
    node: String,
    by_key: BTreeMap<String, SessionHold<S>>,
}

struct SessionHold<S> {
    owner: String,
    token: FencingToken,
    session: S,
}

impl<S: Copy + PartialEq> SessionHolds<S> {
    pub fn new(node: &str) -> SessionHolds<S> {
        SessionHolds {
            node: node.to_owned(),
            by_key: BTreeMap::new(),
        }
    }

    /// Returns the sessions that hold something.
    pub fn sessions(&self) -> Vec<S> {
        self.by_key.values().map(|hold| hold.session).collect()
    }

    /// A session that is granted what it holds already holds it twice, and has released it when
    /// both have. Another one is granted it only when the first has let it go, whose report can
    /// come a moment later.
    pub fn changed(&mut self, at_ns: u64, session: S, change: SessionChange) -> Vec<LockEvent> {
        match change {
            SessionChange::Granted { key, owner, token } => {
                let token = FencingToken(token);
                let now = SessionHold {
                    owner,
                    token,
                    session,
                };
                let granted = self.row(at_ns, LockEventKind::Granted, &key, &now);
                let before = self.by_key.insert(key.clone(), now);
                let ended = before.filter(|before| before.session != session);
                let ended =
                    ended.map(|before| self.row(at_ns, LockEventKind::Expired, &key, &before));
                ended.into_iter().chain([granted]).collect()
            }
            SessionChange::Released { key, owner } => {
                let is_holder = self
                    .by_key
                    .get(&key)
                    .is_some_and(|hold| hold.owner == owner);
                let held = is_holder.then(|| self.by_key.remove(&key)).flatten();
                let row = |held| self.row(at_ns, LockEventKind::Released, &key, &held);
                held.map(row).into_iter().collect()
            }
        }
    }

    /// Returns the ends of the holds of these sessions, which are over.
    pub fn over(&mut self, at_ns: u64, sessions: &[S]) -> Vec<LockEvent> {
        let all = std::mem::take(&mut self.by_key);
        let (over, held): (BTreeMap<_, _>, _) = all
            .into_iter()
            .partition(|(_, hold)| sessions.contains(&hold.session));
        self.by_key = held;
        let over = over.iter();
        over.map(|(key, hold)| self.row(at_ns, LockEventKind::Expired, key, hold))
            .collect()
    }

    fn row(&self, at_ns: u64, kind: LockEventKind, key: &str, hold: &SessionHold<S>) -> LockEvent {
        LockEvent {
            at_ns,
            node: self.node.clone(),
            key: key.to_owned(),
            kind,
            owner: Some(hold.owner.clone()),
            token: Some(hold.token),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::model::joined;

    pub fn words(rows: Vec<LockEvent>) -> String {
        let words = |row: LockEvent| {
            let token = row.token.map_or("-".to_owned(), |token| token.to_string());
            format!("{:?} {} {token}", row.kind, row.owner.unwrap_or_default())
        };
        joined(rows.into_iter().map(words), ", ")
    }

    #[test]
    fn a_lock_goes_from_session_to_session() {
        let mut holds = SessionHolds::new("node");
        let granted = |owner: &str, token| SessionChange::Granted {
            key: "k".to_owned(),
            owner: owner.to_owned(),
            token,
        };
        let released = |owner: &str| SessionChange::Released {
            key: "k".to_owned(),
            owner: owner.to_owned(),
        };
        let mut change = |session, change| words(holds.changed(1, session, change));
        assert_eq!(change(7, granted("a", 1)), "Granted a 1");
        assert_eq!(change(7, released("a")), "Released a 1");
        assert_eq!(change(7, granted("b", 2)), "Granted b 2");
        // The report of its release comes a moment later.
        assert_eq!(change(8, granted("c", 3)), "Expired b 2, Granted c 3");
        assert_eq!(change(7, released("b")), "");
        // A pooler gives one session to two clients.
        assert_eq!(change(8, granted("d", 4)), "Granted d 4");
        assert_eq!(change(8, released("c")), "");
        assert_eq!(holds.sessions(), [8]);
        assert_eq!(words(holds.over(2, &[7])), "");
        assert_eq!(words(holds.over(2, &[8])), "Expired d 4");
        assert!(holds.sessions().is_empty());
    }
}
