//! The ends of holds at the lock servers, as far as they were seen.

use super::*;

impl<'a> Case<'_, 'a> {
    /// Returns when a hold expired. A lock on several servers is gone once half of those
    /// that granted it have let it go: the others are not a majority.
    pub fn ran_out_ns(&self, hold: &Hold, next: Option<&Hold>) -> Option<u64> {
        let granted = self.lock_rows(hold, LockEventKind::Granted);
        let servers: BTreeSet<&str> = granted.map(|row| row.node.as_str()).collect();
        let needed = servers.len().max(1).div_ceil(2);
        let expiry = self.expiries(hold).into_iter().nth(needed - 1)?;
        self.let_go_ns(expiry, hold, next)
    }

    /// Returns the first server that had let a hold go by the next grant, and when.
    pub fn ran_out_on(&self, hold: &Hold, next: &Hold) -> Option<(&'a str, u64)> {
        let expiry = *self.expiries(hold).first()?;
        let at_ns = self.let_go_ns(expiry, hold, Some(next))?;
        (at_ns <= next.from_ns).then_some((expiry.node.as_str(), at_ns))
    }

    /// Returns the worker whose release freed this hold's lock before the next grant, and
    /// when. Its answer may come after that grant; the grant shows that the lock was free
    /// by then.
    pub fn freed_by(&self, hold: &Hold, next: &Hold) -> Option<(&'a str, u64)> {
        let history = &self.sound.history;
        let freed = history.iter().find(|event| {
            let outcome = match &event.kind {
                EventKind::Released { key, outcome, .. } if key == hold.key => *outcome,
                _ => return false,
            };
            outcome == ReleaseOutcome::FreedAnother
                && event.worker != hold.worker
                && event.at_ns >= hold.from_ns
        })?;
        let asked = history.iter().rfind(|event| {
            matches!(event.kind, EventKind::Releasing { .. })
                && event.worker == freed.worker
                && event.at_ns <= freed.at_ns
        })?;
        let in_between = asked.at_ns <= next.from_ns;
        in_between.then_some((freed.worker.as_str(), freed.at_ns.min(next.from_ns)))
    }

    /// Returns the expiries of a hold in order, one for each server.
    fn expiries(&self, hold: &Hold) -> Vec<&'a LockEvent> {
        let mut expiries: Vec<&LockEvent> = Vec::new();
        for row in self.lock_rows(hold, LockEventKind::Expired) {
            let is_new = expiries.iter().all(|known| known.node != row.node);
            if is_new && row.at_ns >= hold.from_ns {
                expiries.push(row);
            }
        }
        expiries.sort_by_key(|row| row.at_ns);
        expiries
    }

    fn lock_rows(&self, hold: &Hold, kind: LockEventKind) -> impl Iterator<Item = &'a LockEvent> {
        let (key, grant) = (hold.key, hold.grant);
        let rows = self.sound.locks.iter().copied();
        rows.filter(move |row| {
            row.kind == kind && row.key == key && grant.is_some_and(|grant| may_be_of(row, &grant))
        })
    }

    /// Returns when a server let a hold go. A bystander sees events a little late. If it
    /// saw this expiry before the next grant on the same node, the expiry came before
    /// that grant, even if the next holder recorded its grant earlier.
    fn let_go_ns(&self, expiry: &LockEvent, hold: &Hold, next: Option<&Hold>) -> Option<u64> {
        let Some((next, next_grant)) = next
            .filter(|next| next.from_ns > hold.from_ns)
            .and_then(|next| Some((next, next.grant?)))
        else {
            return Some(expiry.at_ns);
        };
        let granted_after = self.sound.locks.iter().any(|event| {
            event.kind == LockEventKind::Granted
                && event.key == hold.key
                && event.node == expiry.node
                && event.at_ns >= expiry.at_ns
                && (event.owner.as_deref() == Some(next_grant.owner)
                    || (event.token.is_some() && event.token == next_grant.token))
        });
        if granted_after {
            return Some(expiry.at_ns.min(next.from_ns));
        }
        let is_labelled = expiry.owner.is_some() || expiry.token.is_some();
        // Without a label, an expiry after the next grant may belong to that grant.
        (is_labelled || expiry.at_ns <= next.from_ns).then_some(expiry.at_ns)
    }
}

/// Returns whether an event can belong to a grant. An owner is random and decides it. The
/// token only helps if no owner was seen: a Redlock node counts for itself, and its
/// number need not be the one that the quorum agreed on.
fn may_be_of(event: &LockEvent, grant: &Grant) -> bool {
    match &event.owner {
        Some(owner) => owner == grant.owner,
        None => event.token.is_none() || event.token == grant.token,
    }
}
