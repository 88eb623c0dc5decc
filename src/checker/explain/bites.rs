//! The faults that a story needs.

use super::evidence::Evidence;
use super::scene::Scene;
use super::{Need, Step};
use crate::model::{FaultKind, FaultRow, FaultStage};
use std::collections::{HashMap, HashSet};

/// A fault that was seen to bite.
pub(super) struct Bite<'a> {
    pub kind: FaultKind,
    pub at_ns: u64,
    /// This is its end.
    pub ended: bool,
    row: &'a FaultRow,
    /// What was asked for: how far a clock jumps.
    request: Option<&'a FaultRow>,
}

impl<'a> Bite<'a> {
    pub fn step(self, need: Need) -> Step<'a> {
        Step {
            need,
            at_ns: self.at_ns,
            scene: Scene::Fault {
                kind: self.kind,
                target: &self.row.target,
                called: self.row.called(),
                request: self.request,
                ended: self.ended,
            },
        }
    }

    fn befell(&self, worker: &str) -> bool {
        self.row.target == worker
    }

    /// What takes a lock away behind its holder's back, or holds up a write.
    fn explains(&self, worker: &str, rival_ns: Option<u64>) -> bool {
        let by_then = rival_ns.is_none_or(|rival_ns| self.at_ns <= rival_ns);
        match self.kind {
            FaultKind::Stall => true,
            FaultKind::Skew | FaultKind::Drift => by_then && !self.ended,
            FaultKind::Kill | FaultKind::Restart | FaultKind::RestartEmpty | FaultKind::Promote => {
                by_then && !self.befell(worker)
            }
            _ => false,
        }
    }
}

impl<'a> Evidence<'_, 'a> {
    /// The faults that bit between two moments, or stood at the first, on one
    /// worker or on something that is no worker at all; what happens to the
    /// other workers is their story.
    pub(super) fn bites(&self, worker: &str, from_ns: u64, to_ns: u64) -> Vec<Bite<'a>> {
        let workers = self.workers();
        let stages = Stages::of(&self.sound.faults);
        let faults = self.sound.faults.iter().copied();
        let mut bites: Vec<Bite> = faults
            .filter(|row| row.target == worker || !workers.contains(row.target.as_str()))
            .filter_map(|row| stages.bite(row))
            .filter(|bite| {
                let is_elsewhere = !workers.contains(bite.row.target.as_str());
                let stood = bite.at_ns < from_ns && is_elsewhere && stages.stands_at(bite, from_ns);
                stood || (from_ns..=to_ns).contains(&bite.at_ns)
            })
            .collect();
        bites.sort_by_key(|bite| bite.at_ns);
        bites
    }

    fn workers(&self) -> HashSet<&'a str> {
        let named = self.sound.record.workers.iter().map(String::as_str);
        let held = self.holds.iter().map(|hold| hold.worker);
        named.chain(held).collect()
    }
}

/// The first row of each stage of each fault.
struct Stages<'a>(HashMap<(u32, FaultStage), &'a FaultRow>);

impl<'a> Stages<'a> {
    fn of(faults: &[&'a FaultRow]) -> Stages<'a> {
        let mut firsts = HashMap::new();
        for &row in faults {
            firsts.entry((row.id, row.stage)).or_insert(row);
        }
        Stages(firsts)
    }

    /// What lets its target go on, or changes it at one stroke, may show before
    /// anybody has seen it: so it is told at the moment it was asked for.
    fn bite(&self, row: &'a FaultRow) -> Option<Bite<'a>> {
        let stage_ns = |stage| self.stage(row, stage).unwrap_or(row).at_ns;
        let (kind, at_ns, ended) = match (row.fault, row.stage) {
            (FaultKind::Pause, FaultStage::Healed) => (FaultKind::Resume, row.at_ns, false),
            (FaultKind::Freeze, FaultStage::Healed) => (FaultKind::Thaw, row.at_ns, false),
            (kind, FaultStage::Observed) if !kind.stands() || kind == FaultKind::Skew => {
                (kind, stage_ns(FaultStage::Requested), false)
            }
            (kind, FaultStage::Observed) => (kind, row.at_ns, false),
            (kind, FaultStage::Ended | FaultStage::Healed) => {
                (kind, stage_ns(FaultStage::Ending), true)
            }
            _ => return None,
        };
        Some(Bite {
            kind,
            at_ns,
            ended,
            row,
            request: self.stage(row, FaultStage::Requested),
        })
    }

    fn stage(&self, row: &FaultRow, stage: FaultStage) -> Option<&'a FaultRow> {
        self.0.get(&(row.id, stage)).copied()
    }

    /// Whether a fault had not ended by then.
    fn stands_at(&self, bite: &Bite, at_ns: u64) -> bool {
        let end = self.stage(bite.row, FaultStage::Ended);
        let begins_and_stays = !bite.ended && bite.kind.stands();
        begins_and_stays && end.is_none_or(|end| end.at_ns >= at_ns)
    }
}

/// Of the late writer's own faults, the stop in which the rival came in and the
/// end of that stop carry the story. What can have taken its lock away helps;
/// whatever else befell anything but a worker is told where there is room.
pub(super) fn steps<'a>(
    bites: Vec<Bite<'a>>,
    worker: &str,
    rival_ns: Option<u64>,
) -> Vec<Step<'a>> {
    let befell =
        |bite: &Bite, kinds: [FaultKind; 2]| bite.befell(worker) && kinds.contains(&bite.kind);
    let is_stop = |bite: &Bite| befell(bite, [FaultKind::Pause, FaultKind::Freeze]);
    let is_before_rival = |bite: &Bite| rival_ns.is_none_or(|rival_ns| bite.at_ns <= rival_ns);
    let stop = bites
        .iter()
        .rposition(|bite| is_stop(bite) && is_before_rival(bite))
        .or_else(|| bites.iter().position(is_stop));
    let end = stop.and_then(|stop| {
        let is_end = |bite: &Bite| befell(bite, [FaultKind::Resume, FaultKind::Thaw]);
        bites[stop..].iter().position(is_end).map(|end| stop + end)
    });
    let mut steps = Vec::new();
    // Where there is no room for all, the latest say most.
    for (index, bite) in bites.into_iter().enumerate().rev() {
        let need = if Some(index) == stop || Some(index) == end {
            Need::Essential
        } else if bite.explains(worker, rival_ns) {
            Need::Helpful
        } else if !bite.befell(worker) {
            Need::Colour
        } else {
            continue;
        };
        steps.push(bite.step(need));
    }
    steps
}
