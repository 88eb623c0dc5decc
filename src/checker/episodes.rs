//! Faults as they really happened, each from its request to its end.

use crate::model::{FaultKind, FaultRow, FaultStage};
use std::collections::BTreeMap;

/// All rows of one fault.
pub(super) struct Episode<'a> {
    pub id: u32,
    pub kind: FaultKind,
    pub target: &'a str,
    pub rows: Vec<&'a FaultRow>,
    /// When a fault that stands still was ended by an action of its own.
    ended_by_other_ns: Option<u64>,
    /// When that action was asked for.
    other_asked_ns: Option<u64>,
}

impl<'a> Episode<'a> {
    pub fn stage(&self, stage: FaultStage) -> Option<&'a FaultRow> {
        self.rows.iter().copied().find(|row| row.stage == stage)
    }

    pub fn requested_ns(&self) -> u64 {
        let first = self.stage(FaultStage::Requested);
        first.unwrap_or(self.rows[0]).at_ns
    }

    /// When it was proven.
    pub fn observed_ns(&self) -> Option<u64> {
        self.stage(FaultStage::Observed).map(|row| row.at_ns)
    }

    pub fn is_proven(&self) -> bool {
        self.observed_ns().is_some()
    }

    /// When nothing of it was left, as far as is known. What changes its target
    /// at one stroke is over when it was seen.
    pub fn over_ns(&self) -> Option<u64> {
        let end = self.stage(FaultStage::Ended);
        let end = end.or(self.stage(FaultStage::Healed));
        let end_ns = end.map(|row| row.at_ns).or(self.ended_by_other_ns);
        match self.kind.stands() {
            true => end_ns,
            false => self.observed_ns(),
        }
    }

    /// When somebody asked its target to go on, or undid it.
    pub fn asked_to_end_ns(&self) -> Option<u64> {
        let ends = self.rows.iter().filter(|row| {
            let observed_ns = self.observed_ns();
            matches!(row.stage, FaultStage::Ended | FaultStage::Healed)
                && observed_ns.is_none_or(|observed_ns| row.at_ns >= observed_ns)
        });
        ends.map(|row| row.at_ns).chain(self.other_asked_ns).min()
    }

    /// By its target, or by what the scenario calls it.
    pub fn is_called(&self, name: &str) -> bool {
        let mut rows = self.rows.iter();
        self.target == name || rows.any(|row| row.alias.as_deref() == Some(name))
    }

    /// Whether it may have changed anything between two moments.
    pub fn touches(&self, from_ns: u64, to_ns: u64) -> bool {
        self.requested_ns() <= to_ns && self.over_ns().is_none_or(|over_ns| over_ns >= from_ns)
    }

    /// `restart-empty of redis`.
    pub fn words(&self) -> String {
        format!("{} of {}", self.kind, self.target)
    }
}

/// In the order of their ids.
pub(super) fn of<'a>(faults: &[&'a FaultRow]) -> Vec<Episode<'a>> {
    let mut by_id: BTreeMap<u32, Vec<&FaultRow>> = BTreeMap::new();
    for row in faults {
        by_id.entry(row.id).or_default().push(row);
    }
    let episodes = by_id.into_iter();
    episodes
        .map(|(id, rows)| {
            let (kind, target) = (rows[0].fault, rows[0].target.as_str());
            let seen = rows.iter().find(|row| row.stage == FaultStage::Observed);
            Episode {
                id,
                kind,
                target,
                ended_by_other_ns: seen.and_then(|seen| let_go_ns(faults, seen, [OBSERVED])),
                other_asked_ns: seen
                    .and_then(|seen| let_go_ns(faults, seen, [REQUESTED, OBSERVED])),
                rows,
            }
        })
        .collect()
}

/// What ends a fault that makes its target stand still.
pub(super) fn let_go_by(fault: FaultKind) -> Option<FaultKind> {
    match fault {
        FaultKind::Pause => Some(FaultKind::Resume),
        FaultKind::Freeze => Some(FaultKind::Thaw),
        _ => None,
    }
}

const REQUESTED: FaultStage = FaultStage::Requested;
const OBSERVED: FaultStage = FaultStage::Observed;

/// The first row that says that a target which stood still was let go.
fn let_go_ns<const N: usize>(
    faults: &[&FaultRow],
    seen: &FaultRow,
    stages: [FaultStage; N],
) -> Option<u64> {
    let end = let_go_by(seen.fault)?;
    let ends = faults.iter().filter(|row| {
        row.fault == end
            && stages.contains(&row.stage)
            && row.target == seen.target
            && row.at_ns >= seen.at_ns
    });
    ends.map(|row| row.at_ns).min()
}

/// When a worker was seen to have been killed.
pub(super) fn killed_ns(episodes: &[Episode], worker: &str) -> Option<u64> {
    kill_of(episodes, worker)?.observed_ns()
}

/// When the signal was sent of which a worker was seen to have died.
pub(super) fn kill_sent_ns(episodes: &[Episode], worker: &str) -> Option<u64> {
    Some(kill_of(episodes, worker)?.requested_ns())
}

fn kill_of<'e, 'a>(episodes: &'e [Episode<'a>], worker: &str) -> Option<&'e Episode<'a>> {
    let mut kills = episodes.iter();
    kills.find(|it| it.kind == FaultKind::Kill && it.target == worker && it.is_proven())
}
