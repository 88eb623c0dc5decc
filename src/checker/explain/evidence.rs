use super::super::holds::{Grant, Hold};
use super::super::names::Names;
use super::super::positions::Positions;
use super::scene::{Scene, Who};
use super::{Need, Step};
use crate::model::{CaseRecord, FaultKind, FaultRow, FaultStage, LockEvent, LockEventKind};
use crate::model::{FencingToken, LogRow};

/// Everything a story may quote.
pub(super) struct Evidence<'a> {
    pub record: &'a CaseRecord,
    pub holds: &'a [Hold<'a>],
    pub positions: &'a Positions<'a>,
    pub names: &'a Names<'a>,
}

/// A fault that was seen to bite.
pub(super) struct Bite<'a> {
    pub kind: FaultKind,
    pub target: &'a str,
    pub at_ns: u64,
}

impl<'a> Bite<'a> {
    pub fn step(self, need: Need) -> Step<'a> {
        Step {
            need,
            at_ns: self.at_ns,
            scene: Scene::Fault {
                kind: self.kind,
                target: self.target,
            },
        }
    }
}

impl<'a> Evidence<'a> {
    pub fn who(&self, owner: Option<&'a str>) -> Who<'a> {
        Who {
            worker: self.names.worker(owner),
            owner,
        }
    }

    /// The hold that a row was written under, by its owner or, without one, by its token.
    pub fn hold_of(&self, row: &LogRow) -> Option<&'a Hold<'a>> {
        match (&row.owner, row.token) {
            (Some(owner), _) => self.holds.iter().find(|hold| {
                hold.key == row.key && hold.grant.is_some_and(|grant| grant.owner == owner)
            }),
            (None, Some(token)) => self.hold_with(&row.key, token),
            (None, None) => None,
        }
    }

    pub fn hold_with(&self, key: &str, token: FencingToken) -> Option<&'a Hold<'a>> {
        self.holds
            .iter()
            .find(|hold| hold.key == key && hold.grant.is_some_and(|grant| grant.token == token))
    }

    /// The faults that bit between two moments, on one worker or on something
    /// that is no worker at all; what happens to the other workers is their story.
    pub fn bites(&self, worker: &str, from_ns: u64, to_ns: u64) -> Vec<Bite<'a>> {
        let mut bites: Vec<Bite> = self
            .record
            .faults
            .iter()
            .filter(|row| row.target == worker || !self.is_worker(&row.target))
            .filter_map(|row| self.bite(row))
            .filter(|bite| (from_ns..=to_ns).contains(&bite.at_ns))
            .collect();
        bites.sort_by_key(|bite| bite.at_ns);
        bites
    }

    /// A target moves on as soon as it is allowed to, and may well have written
    /// before anybody sees it running: so a resume that was proven is told at
    /// the moment it was asked for.
    fn bite(&self, row: &'a FaultRow) -> Option<Bite<'a>> {
        let (kind, at_ns) = match (row.fault, row.stage) {
            (FaultKind::Pause, FaultStage::Healed) => (FaultKind::Resume, row.at_ns),
            (FaultKind::Resume, FaultStage::Observed) => {
                let requested = self
                    .record
                    .faults
                    .iter()
                    .find(|other| other.id == row.id && other.stage == FaultStage::Requested);
                (FaultKind::Resume, requested.unwrap_or(row).at_ns)
            }
            (kind, FaultStage::Observed) => (kind, row.at_ns),
            _ => return None,
        };
        Some(Bite {
            kind,
            target: &row.target,
            at_ns,
        })
    }

    fn is_worker(&self, target: &str) -> bool {
        self.record.workers.iter().any(|worker| worker == target)
            || self.holds.iter().any(|hold| hold.worker == target)
    }

    /// When the lock server let a hold run out, as far as it was seen.
    ///
    /// A bystander sees things a little late. Where it saw this expiry before the
    /// next grant on the same node, the expiry came before that grant, even if
    /// the next holder wrote down its grant earlier.
    pub fn expiry_ns(&self, hold: &Hold, next: Option<&Hold>) -> Option<u64> {
        let grant = hold.grant?;
        let expiry = self.record.locks.iter().find(|event| {
            event.kind == LockEventKind::Expired
                && event.key == hold.key
                && event.at_ns >= hold.from_ns
                && may_be_of(event, &grant)
        })?;
        let Some((next, next_grant)) = next
            .filter(|next| next.from_ns > hold.from_ns)
            .and_then(|next| Some((next, next.grant?)))
        else {
            return Some(expiry.at_ns);
        };
        let granted_after = self.record.locks.iter().any(|event| {
            event.kind == LockEventKind::Granted
                && event.key == hold.key
                && event.node == expiry.node
                && event.at_ns >= expiry.at_ns
                && (event.owner.as_deref() == Some(next_grant.owner)
                    || event.token == Some(next_grant.token))
        });
        if granted_after {
            return Some(expiry.at_ns.min(next.from_ns));
        }
        let is_labelled = expiry.owner.is_some() || expiry.token.is_some();
        // Without a label, an expiry after the next grant may be the next one's own.
        (is_labelled || expiry.at_ns <= next.from_ns).then_some(expiry.at_ns)
    }
}

/// An owner is random and says it all. The token only helps where no owner was
/// seen: a Redlock node counts for itself, and its number need not be the one
/// that the quorum agreed on.
fn may_be_of(event: &LockEvent, grant: &Grant) -> bool {
    match &event.owner {
        Some(owner) => owner == grant.owner,
        None => event.token.is_none_or(|token| token == grant.token),
    }
}
