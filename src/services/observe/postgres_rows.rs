//! Turns what a Postgres reports about leases and advisory locks into rows of `locks.jsonl`.

use super::*;
use serde::Deserialize;

/// A change of one lease, as observe_postgres.sql reports it.
#[derive(Debug, Deserialize)]
pub(super) struct LeaseChange {
    key: String,
    owner: Option<String>,
    token: Option<i64>,
    owner_before: Option<String>,
    token_before: Option<i64>,
    had_expired: Option<bool>,
    renewed: Option<bool>,
}

impl LeaseChange {
    /// Returns what became of the lock. Nothing happens at the server when a lease expires:
    /// it shows when somebody is granted the lock, or gives back what was over.
    pub(super) fn rows(self, at_ns: u64, node: &str) -> Vec<LockEvent> {
        let row = |kind, owner: &Option<String>, token: Option<i64>| LockEvent {
            at_ns,
            node: node.to_owned(),
            key: self.key.clone(),
            kind,
            owner: owner.clone(),
            token: token.and_then(|token| u64::try_from(token).ok().map(FencingToken)),
        };
        let had_expired = self.had_expired.unwrap_or(false);
        let end = match had_expired {
            true => LockEventKind::Expired,
            false => LockEventKind::Released,
        };
        let ended = row(end, &self.owner_before, self.token_before);
        let granted = row(LockEventKind::Granted, &self.owner, self.token);
        match (&self.owner_before, &self.owner) {
            (Some(before), Some(now)) if before == now => match self.renewed {
                Some(true) => vec![row(LockEventKind::Renewed, &self.owner, self.token)],
                _ => Vec::new(),
            },
            // A lock that is taken from its holder was not released.
            (Some(_), Some(_)) if !had_expired => vec![granted],
            (Some(_), Some(_)) => vec![ended, granted],
            (Some(_), None) => vec![ended],
            (None, Some(_)) => vec![granted],
            (None, None) => Vec::new(),
        }
    }
}

/// A grant or a release of an advisory lock, as the session of its holder reports it.
#[derive(Debug, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum AdvisoryChange {
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

/// The advisory locks that sessions hold, by key.
pub(super) struct AdvisoryHolds {
    node: String,
    by_key: BTreeMap<String, AdvisoryHold>,
}

struct AdvisoryHold {
    owner: String,
    token: FencingToken,
    session: i32,
}

impl AdvisoryHolds {
    pub(super) fn new(node: &str) -> AdvisoryHolds {
        AdvisoryHolds {
            node: node.to_owned(),
            by_key: BTreeMap::new(),
        }
    }

    /// Returns the sessions that hold something.
    pub(super) fn sessions(&self) -> Vec<i32> {
        self.by_key.values().map(|hold| hold.session).collect()
    }

    /// A session that is granted what it holds already holds it twice, and has released it when
    /// both have. Another one is granted it only when the first has let it go, whose report can
    /// come a moment later.
    pub(super) fn changed(
        &mut self,
        at_ns: u64,
        session: i32,
        change: AdvisoryChange,
    ) -> Vec<LockEvent> {
        match change {
            AdvisoryChange::Granted { key, owner, token } => {
                let token = FencingToken(token);
                let now = AdvisoryHold {
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
            AdvisoryChange::Released { key, owner } => {
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
    pub(super) fn over(&mut self, at_ns: u64, sessions: &[i32]) -> Vec<LockEvent> {
        let all = std::mem::take(&mut self.by_key);
        let (over, held): (BTreeMap<_, _>, _) = all
            .into_iter()
            .partition(|(_, hold)| sessions.contains(&hold.session));
        self.by_key = held;
        let over = over.iter();
        over.map(|(key, hold)| self.row(at_ns, LockEventKind::Expired, key, hold))
            .collect()
    }

    fn row(&self, at_ns: u64, kind: LockEventKind, key: &str, hold: &AdvisoryHold) -> LockEvent {
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
mod tests {
    use super::*;
    use crate::model::joined;

    fn told(change: &str) -> String {
        let change: LeaseChange = serde_json::from_str(change).unwrap();
        words(change.rows(1, "postgres"))
    }

    fn words(rows: Vec<LockEvent>) -> String {
        let words = |row: LockEvent| {
            let token = row.token.map_or("-".to_owned(), |token| token.to_string());
            format!("{:?} {} {token}", row.kind, row.owner.unwrap_or_default())
        };
        joined(rows.into_iter().map(words), ", ")
    }

    #[test]
    fn an_advisory_lock_goes_from_session_to_session() {
        let mut holds = AdvisoryHolds::new("postgres");
        let granted = |owner: &str, token| AdvisoryChange::Granted {
            key: "k".to_owned(),
            owner: owner.to_owned(),
            token,
        };
        let released = |owner: &str| AdvisoryChange::Released {
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

    #[test]
    fn a_lock_goes_from_hand_to_hand() {
        for (change, rows) in [
            (r#"{"key":"k","owner":"a","token":1}"#, "Granted a 1"),
            (
                r#"{"key":"k","owner":"a","token":1,"owner_before":"a","token_before":1,"renewed":true}"#,
                "Renewed a 1",
            ),
            (
                r#"{"key":"k","owner":"b","token":2,"owner_before":"a","token_before":1,"had_expired":true,"renewed":true}"#,
                "Expired a 1, Granted b 2",
            ),
            (
                r#"{"key":"k","token":2,"owner_before":"b","token_before":2,"had_expired":false}"#,
                "Released b 2",
            ),
            (
                r#"{"key":"k","token":2,"owner_before":"b","token_before":2,"had_expired":true}"#,
                "Expired b 2",
            ),
        ] {
            assert_eq!(told(change), rows);
        }
    }

    #[test]
    fn what_is_no_hold_makes_no_row_and_a_theft_is_no_release() {
        for (change, rows) in [
            (r#"{"key":"k","token":0}"#, ""),
            (
                r#"{"key":"k","owner":"a","token":1,"owner_before":"a","token_before":1,"renewed":false}"#,
                "",
            ),
            (
                r#"{"key":"k","owner":"thief","token":1,"owner_before":"a","token_before":1,"had_expired":false}"#,
                "Granted thief 1",
            ),
        ] {
            assert_eq!(told(change), rows);
        }
    }
}
