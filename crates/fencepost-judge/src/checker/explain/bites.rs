//! The faults that a story needs.

use super::*;

pub(super) struct Bite<'a> {
    pub kind: FaultKind,
    pub at_ns: u64,
    /// Whether this is its end.
    pub ended: bool,
    row: &'a FaultRow,
    /// The row that requested it, for details such as how far a clock jumps.
    request: Option<&'a FaultRow>,
}

impl<'a> Bite<'a> {
    /// Makes a step. The symbolic words use the alias (`leader`), because the node that
    /// it names differs from run to run.
    pub fn step(self, need: Need) -> Step {
        let words = |target: &str| match self.ended {
            true => self.kind.ends(target),
            false => fault_words::begins(self.kind, target, self.request),
        };
        let symbolic = match &self.row.alias {
            Some(alias) if *alias != self.row.target => words(&format!("the {alias}")),
            _ => words(&self.row.target),
        };
        Step {
            need,
            at_ns: self.at_ns,
            scene: Scene::new(StepKind::Fault).each(symbolic, words(&self.row.target)),
        }
    }

    fn stands_at(&self, episode: &Episode, at_ns: u64) -> bool {
        let end = episode.stage(FaultStage::Ended);
        let begins_and_stays = !self.ended && self.kind.lasts();
        begins_and_stays && end.is_none_or(|end| end.at_ns >= at_ns)
    }

    fn befell(&self, worker: &str) -> bool {
        self.row.target == worker
    }

    /// Returns whether it takes a lock away behind its holder's back, or holds up a
    /// write.
    fn explains(&self, worker: &str, rival_ns: Option<u64>) -> bool {
        let by_then = rival_ns.is_none_or(|rival_ns| self.at_ns <= rival_ns);
        match self.kind.class() {
            FaultClass::Clock => by_then && !self.ended,
            FaultClass::Kill | FaultClass::Restart | FaultClass::Promotion => {
                by_then && !self.befell(worker)
            }
            FaultClass::Links => self.kind == FaultKind::Stall,
            FaultClass::Stop
            | FaultClass::Continue
            | FaultClass::Disconnection
            | FaultClass::PacketLoss => false,
        }
    }
}

impl<'a> Case<'_, 'a> {
    /// Returns the faults that took effect between two moments, or were active at the
    /// first, on this worker or on something that is not a worker. Faults of other
    /// workers belong to the stories of those workers.
    pub(super) fn bites(&self, worker: &str, from_ns: u64, to_ns: u64) -> Vec<Bite<'a>> {
        let workers = self.workers();
        let is_worker = |row: &FaultRow| workers.contains(row.target.as_str());
        let mut bites: Vec<Bite> = Vec::new();
        for episode in self.episodes.iter() {
            let rows = episode.rows.iter().copied();
            let rows = rows.filter(|row| row.target == worker || !is_worker(row));
            bites.extend(rows.filter_map(|row| bite(episode, row)).filter(|bite| {
                let stood = bite.at_ns < from_ns && !is_worker(bite.row);
                (from_ns..=to_ns).contains(&bite.at_ns)
                    || (stood && bite.stands_at(episode, from_ns))
            }));
        }
        bites.sort_by_key(|bite| bite.at_ns);
        bites
    }

    fn workers(&self) -> HashSet<&'a str> {
        let named = self.sound.record.workers.iter().map(String::as_str);
        let held = self.holds.all.iter().map(|hold| hold.worker);
        named.chain(held).collect()
    }
}

/// Makes the bite of one row. A fault that lets its target go on, or changes it at once,
/// may show effects before anybody has observed it: so it gets the time of its request.
fn bite<'a>(episode: &Episode<'a>, row: &'a FaultRow) -> Option<Bite<'a>> {
    let stage_ns = |stage| episode.stage(stage).unwrap_or(row).at_ns;
    let (kind, at_ns, ended) = match (row.fault, row.stage) {
        (kind, FaultStage::Healed) if kind.class() == FaultClass::Stop => {
            (kind.continued_by()?, row.at_ns, false)
        }
        (kind, FaultStage::Observed) if !kind.lasts() || kind == FaultKind::Skew => {
            (kind, stage_ns(FaultStage::Requested), false)
        }
        (kind, FaultStage::Observed) => (kind, row.at_ns, false),
        (kind, FaultStage::Ended | FaultStage::Healed) => {
            (kind, stage_ns(FaultStage::Ending), true)
        }
        (_, FaultStage::Requested | FaultStage::Unproven | FaultStage::Ending) => return None,
    };
    Some(Bite {
        kind,
        at_ns,
        ended,
        row,
        request: episode.stage(FaultStage::Requested),
    })
}

/// Of the late writer's own faults, the stop during which the rival came in and the end
/// of that stop are essential. Faults that can have taken its lock away are helpful.
/// Other faults that affected anything but a worker are added if there is room.
pub(super) fn steps<'a>(bites: Vec<Bite<'a>>, worker: &str, rival_ns: Option<u64>) -> Vec<Step> {
    let befell = |bite: &Bite, class: FaultClass| bite.befell(worker) && bite.kind.class() == class;
    let is_stop = |bite: &Bite| befell(bite, FaultClass::Stop);
    let is_before_rival = |bite: &Bite| rival_ns.is_none_or(|rival_ns| bite.at_ns <= rival_ns);
    let stop = bites
        .iter()
        .rposition(|bite| is_stop(bite) && is_before_rival(bite))
        .or_else(|| bites.iter().position(is_stop));
    let end = stop.and_then(|stop| {
        let is_end = |bite: &Bite| befell(bite, FaultClass::Continue);
        bites[stop..].iter().position(is_end).map(|end| stop + end)
    });
    let mut steps = Vec::new();
    // If there is no room for all, the latest say most.
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
