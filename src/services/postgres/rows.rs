//! Turns what a Postgres reports about leases into rows of `locks.jsonl`.

use crate::services::observe::*;
use serde::Deserialize;

/// A change of one lease, as observe_leases.sql reports it.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::observe::session_rows::tests::words;

    fn told(change: &str) -> String {
        let change: LeaseChange = serde_json::from_str(change).unwrap();
        words(change.rows(1, "postgres"))
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
