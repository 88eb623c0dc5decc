//! Faults as they really happened, each from its request to its end.

use super::*;
use std::ops::Deref;

/// All rows of one fault.
pub(super) struct Episode<'a> {
    pub id: u32,
    pub kind: FaultKind,
    pub target: &'a str,
    /// The links, if the target is links.
    pub scope: Option<&'a LinkScope>,
    pub rows: Vec<&'a FaultRow>,
    /// The first row of each stage.
    firsts: Vec<&'a FaultRow>,
    /// The time at which a separate action ended a fault that keeps its target stopped.
    ended_by_other_ns: Option<u64>,
    /// The time at which that action was requested.
    other_asked_ns: Option<u64>,
}

impl<'a> Episode<'a> {
    pub fn stage(&self, stage: FaultStage) -> Option<&'a FaultRow> {
        self.firsts.iter().copied().find(|row| row.stage == stage)
    }

    pub fn requested_ns(&self) -> u64 {
        let first = self.stage(FaultStage::Requested);
        first.unwrap_or(self.rows[0]).at_ns
    }

    pub fn observed_ns(&self) -> Option<u64> {
        self.stage(FaultStage::Observed).map(|row| row.at_ns)
    }

    pub fn is_proven(&self) -> bool {
        self.observed_ns().is_some()
    }

    /// Returns when the fault was over, as far as is known. A fault that does not last is
    /// over when it was observed.
    pub fn over_ns(&self) -> Option<u64> {
        let end = self.stage(FaultStage::Ended);
        let end = end.or(self.stage(FaultStage::Healed));
        let end_ns = end.map(|row| row.at_ns).or(self.ended_by_other_ns);
        match self.kind.lasts() {
            true => end_ns,
            false => self.observed_ns(),
        }
    }

    /// Returns when somebody asked its target to go on, or undid the fault.
    pub fn asked_to_end_ns(&self) -> Option<u64> {
        let ends = self.rows.iter().filter(|row| {
            let observed_ns = self.observed_ns();
            matches!(row.stage, FaultStage::Ended | FaultStage::Healed)
                && observed_ns.is_none_or(|observed_ns| row.at_ns >= observed_ns)
        });
        ends.map(|row| row.at_ns).chain(self.other_asked_ns).min()
    }

    /// Returns whether this names its target, directly or as the scenario does.
    pub fn is_called(&self, name: &str) -> bool {
        let mut rows = self.rows.iter();
        self.target == name || rows.any(|row| row.alias.as_deref() == Some(name))
    }

    /// Returns whether it may have changed anything between two moments.
    pub fn touches(&self, from_ns: u64, to_ns: u64) -> bool {
        self.requested_ns() <= to_ns && self.over_ns().is_none_or(|over_ns| over_ns >= from_ns)
    }

    /// Returns words like `restart-empty of redis`.
    pub fn words(&self) -> String {
        format!("{} of {}", self.kind, self.target)
    }
}

/// All faults of a case, in the order of their ids.
pub(super) struct Episodes<'a> {
    all: Vec<Episode<'a>>,
    by_target: HashMap<&'a str, Vec<usize>>,
    /// The first proven kill of each target.
    kills: HashMap<&'a str, usize>,
}

impl<'a> Deref for Episodes<'a> {
    type Target = [Episode<'a>];

    fn deref(&self) -> &[Episode<'a>] {
        &self.all
    }
}

impl<'a> Episodes<'a> {
    pub fn of_target(&self, target: &str) -> impl Iterator<Item = &Episode<'a>> {
        let own = self.by_target.get(target).into_iter().flatten();
        own.map(|&index| &self.all[index])
    }

    pub fn killed_ns(&self, worker: &str) -> Option<u64> {
        self.kill_of(worker)?.observed_ns()
    }

    /// Returns when the signal was sent that killed a worker.
    pub fn kill_sent_ns(&self, worker: &str) -> Option<u64> {
        Some(self.kill_of(worker)?.requested_ns())
    }

    fn kill_of(&self, worker: &str) -> Option<&Episode<'a>> {
        self.kills.get(worker).map(|&index| &self.all[index])
    }
}

pub(super) fn of<'a>(faults: &[&'a FaultRow]) -> Episodes<'a> {
    let all = all(faults);
    let mut by_target: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut kills = HashMap::new();
    for (index, episode) in all.iter().enumerate() {
        by_target.entry(episode.target).or_default().push(index);
        if episode.kind == FaultKind::Kill && episode.is_proven() {
            kills.entry(episode.target).or_insert(index);
        }
    }
    Episodes {
        all,
        by_target,
        kills,
    }
}

fn all<'a>(faults: &[&'a FaultRow]) -> Vec<Episode<'a>> {
    let mut by_id: BTreeMap<u32, Vec<&FaultRow>> = BTreeMap::new();
    for row in faults {
        by_id.entry(row.id).or_default().push(row);
    }
    let seen_to_end = ends(faults, &[OBSERVED]);
    let asked_to_end = ends(faults, &[REQUESTED, OBSERVED]);
    let episodes = by_id.into_iter();
    episodes
        .map(|(id, rows)| {
            let (kind, target) = (rows[0].fault, rows[0].target.as_str());
            let seen = rows.iter().find(|row| row.stage == FaultStage::Observed);
            Episode {
                id,
                kind,
                target,
                scope: rows[0].scope.as_ref(),
                firsts: firsts(&rows),
                ended_by_other_ns: seen.and_then(|seen| let_go_ns(&seen_to_end, seen)),
                other_asked_ns: seen.and_then(|seen| let_go_ns(&asked_to_end, seen)),
                rows,
            }
        })
        .collect()
}

const REQUESTED: FaultStage = FaultStage::Requested;
const OBSERVED: FaultStage = FaultStage::Observed;

fn firsts<'a>(rows: &[&'a FaultRow]) -> Vec<&'a FaultRow> {
    let mut firsts: Vec<&FaultRow> = Vec::new();
    for &row in rows {
        if firsts.iter().all(|first| first.stage != row.stage) {
            firsts.push(row);
        }
    }
    firsts
}

/// The sorted times of these stages, by the kind and target of the fault.
type Ends<'a> = HashMap<(FaultKind, &'a str), Vec<u64>>;

fn ends<'a>(faults: &[&'a FaultRow], stages: &[FaultStage]) -> Ends<'a> {
    let mut ends: Ends = HashMap::new();
    for row in faults.iter().filter(|row| stages.contains(&row.stage)) {
        let whose = (row.fault, row.target.as_str());
        ends.entry(whose).or_default().push(row.at_ns);
    }
    for times in ends.values_mut() {
        times.sort_unstable();
    }
    ends
}

/// Returns the time of the first row that lets a stopped target go on.
fn let_go_ns(ends: &Ends, seen: &FaultRow) -> Option<u64> {
    let times = ends.get(&(seen.fault.continued_by()?, seen.target.as_str()))?;
    let later = times.partition_point(|&at_ns| at_ns < seen.at_ns);
    times.get(later).copied()
}
