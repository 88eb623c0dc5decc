//! Honest imperfections of a record: reasons for doubt, never for an accusation.

use super::settings::{MS, Settings};
use super::trouble::Trouble;
use super::world::Played;
use fastrand::Rng;
use fencepost::model::{CaseRecord, EventKind, FaultStage, Gap, Log, LogRow};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Flaw {
    HistoryRowTwice,
    LogRowTwice,
    FaultRowTwice,
    LockRowTwice,
    HistoryTail,
    LogTail,
    FaultsTail,
    LocksTail,
    NeverDone,
    FaultMissing,
    OwnerTwice,
    TimesBackwards,
    Unsettled,
    GapSaid,
    /// The bystander could not tell whose lock it was.
    ObserverForgets,
    /// A record of an earlier program, which said less.
    OldRecord,
}

/// What becomes of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spoiled {
    /// There was nothing to spoil.
    Not,
    /// A doubt is fine, and so is none.
    Perhaps,
    /// There has to be a doubt.
    Surely,
}

impl Flaw {
    pub const ALL: [Flaw; 16] = [
        Flaw::HistoryRowTwice,
        Flaw::LogRowTwice,
        Flaw::FaultRowTwice,
        Flaw::LockRowTwice,
        Flaw::HistoryTail,
        Flaw::LogTail,
        Flaw::FaultsTail,
        Flaw::LocksTail,
        Flaw::NeverDone,
        Flaw::FaultMissing,
        Flaw::OwnerTwice,
        Flaw::TimesBackwards,
        Flaw::Unsettled,
        Flaw::GapSaid,
        Flaw::ObserverForgets,
        Flaw::OldRecord,
    ];

    pub fn shape(self, settings: &mut Settings, random: &mut Rng) {
        let some = [Trouble::Pause, Trouble::Kill, Trouble::Cut];
        match self {
            Flaw::FaultRowTwice | Flaw::FaultsTail | Flaw::FaultMissing => {
                settings.trouble = some[random.usize(..3)];
                settings.trouble_after = settings.trouble_after.min(12);
            }
            Flaw::LockRowTwice | Flaw::LocksTail | Flaw::ObserverForgets => {
                settings.observed = true;
            }
            Flaw::Unsettled => settings.failing = true,
            _ => {}
        }
    }

    pub fn spoil(self, played: &mut Played) -> Spoiled {
        let mut random = Rng::with_seed(played.settings.seed ^ 0xf1a3);
        let record = &mut played.record;
        match self {
            Flaw::HistoryRowTwice => twice(&mut record.history, &mut random),
            Flaw::LogRowTwice => {
                let mut rows = rows(record);
                let spoiled = twice(&mut rows, &mut random);
                record.log = Log::from_rows(rows);
                spoiled
            }
            Flaw::FaultRowTwice => twice(&mut record.faults, &mut random),
            Flaw::LockRowTwice => twice(&mut record.locks, &mut random),
            Flaw::HistoryTail => history_tail(record, &mut random),
            Flaw::LogTail => {
                let mut rows = rows(record);
                let spoiled = cut_tail(&mut rows, &mut random);
                record.log = Log::from_rows(rows);
                spoiled
            }
            Flaw::FaultsTail => faults_tail(record, &mut random),
            Flaw::LocksTail => {
                let spoiled = cut_tail(&mut record.locks, &mut random);
                if spoiled == Spoiled::Surely {
                    let text = "cannot read all of locks.jsonl: its last line is torn";
                    record.gaps.push(Gap::from(text.to_owned()));
                }
                spoiled
            }
            Flaw::NeverDone => never_done(record, &mut random),
            Flaw::FaultMissing => {
                let Some(id) = record.faults.first().map(|row| row.id) else {
                    return Spoiled::Not;
                };
                record.faults.retain(|row| row.id != id);
                Spoiled::Surely
            }
            Flaw::OwnerTwice => owner_twice(record, &mut random),
            Flaw::TimesBackwards => times_backwards(record, &mut random),
            Flaw::Unsettled => {
                record.settled = false;
                Spoiled::Perhaps
            }
            Flaw::GapSaid => {
                let text = "cannot read the metrics of resource: connection refused";
                record.gaps.push(Gap::from(text.to_owned()));
                Spoiled::Surely
            }
            Flaw::ObserverForgets => {
                for row in &mut record.locks {
                    if random.u32(..4) == 0 {
                        row.owner = None;
                        row.token = row.token.filter(|_| random.bool());
                    }
                }
                Spoiled::Perhaps
            }
            Flaw::OldRecord => {
                record.log_rows = None;
                record.ended_ns = None;
                record.refusals_counted = None;
                record.settled = false;
                Spoiled::Perhaps
            }
        }
    }
}

fn history_tail(record: &mut CaseRecord, random: &mut Rng) -> Spoiled {
    let left = record.history.len() - random.usize(1..10);
    record.history.truncate(left);
    if somebody_is_not_done(record) {
        Spoiled::Surely
    } else {
        Spoiled::Perhaps
    }
}

fn faults_tail(record: &mut CaseRecord, random: &mut Rng) -> Spoiled {
    let seen = proven(record);
    if cut_tail(&mut record.faults, random) == Spoiled::Not {
        Spoiled::Not
    } else if proven(record) < seen {
        Spoiled::Surely
    } else {
        Spoiled::Perhaps
    }
}

fn rows(record: &CaseRecord) -> Vec<LogRow> {
    let rows = record.log.rows.iter();
    rows.map(|row| record.log.written(row)).collect()
}

/// The same row once more, at its place or later.
fn twice<T: Clone>(rows: &mut Vec<T>, random: &mut Rng) -> Spoiled {
    if rows.is_empty() {
        return Spoiled::Not;
    }
    let which = random.usize(..rows.len());
    let place = match random.bool() {
        true => which + 1,
        false => random.usize(which + 1..=rows.len()),
    };
    rows.insert(place, rows[which].clone());
    Spoiled::Surely
}

fn cut_tail<T>(rows: &mut Vec<T>, random: &mut Rng) -> Spoiled {
    if rows.is_empty() {
        return Spoiled::Not;
    }
    let lost = random.usize(1..=rows.len().min(5));
    rows.truncate(rows.len() - lost);
    Spoiled::Surely
}

fn proven(record: &CaseRecord) -> usize {
    let rows = record.faults.iter();
    rows.filter(|row| row.stage == FaultStage::Observed).count()
}

fn is_done(record: &CaseRecord, worker: &str) -> bool {
    let mut events = record.history.iter().filter(|event| event.worker == worker);
    events.any(|event| matches!(event.kind, EventKind::Done { .. }))
}

fn is_killed(record: &CaseRecord, worker: &str) -> bool {
    let mut rows = record.faults.iter();
    rows.any(|row| row.target == worker && row.fault.name() == "kill")
}

fn somebody_is_not_done(record: &CaseRecord) -> bool {
    let mut workers = record.workers.iter();
    workers.any(|worker| !is_done(record, worker) && !is_killed(record, worker))
}

fn never_done(record: &mut CaseRecord, random: &mut Rng) -> Spoiled {
    let done: Vec<String> = record
        .workers
        .iter()
        .filter(|worker| is_done(record, worker))
        .cloned()
        .collect();
    if done.is_empty() {
        return Spoiled::Not;
    }
    let chosen = &done[random.usize(..done.len())];
    let is_it = |kind: &EventKind| matches!(kind, EventKind::Done { .. });
    record
        .history
        .retain(|event| event.worker != *chosen || !is_it(&event.kind));
    Spoiled::Surely
}

fn owner_of(kind: &mut EventKind) -> Option<&mut String> {
    match kind {
        EventKind::Acquired { owner, .. }
        | EventKind::Writing { owner, .. }
        | EventKind::WriteAccepted { owner, .. }
        | EventKind::WriteRejected { owner, .. } => Some(owner),
        _ => None,
    }
}

/// One hold's id is an earlier one's, in every file.
fn owner_twice(record: &mut CaseRecord, random: &mut Rng) -> Spoiled {
    let acquired = record.history.iter().filter_map(|event| match &event.kind {
        EventKind::Acquired { owner, .. } => Some(owner.clone()),
        _ => None,
    });
    let owners: Vec<String> = acquired.collect();
    if owners.len() < 2 {
        return Spoiled::Not;
    }
    let later = random.usize(1..owners.len());
    let (from, to) = (&owners[later], &owners[random.usize(..later)]);
    for event in &mut record.history {
        if let Some(owner) = owner_of(&mut event.kind)
            && *owner == *from
        {
            owner.clone_from(to);
        }
    }
    let mut rows = rows(record);
    let in_log = rows.iter_mut().filter_map(|row| row.owner.as_mut());
    let in_locks = record.locks.iter_mut().filter_map(|row| row.owner.as_mut());
    for owner in in_log.chain(in_locks).filter(|owner| *owner == from) {
        owner.clone_from(to);
    }
    record.log = Log::from_rows(rows);
    Spoiled::Surely
}

/// From some event on, a worker's clock is behind itself.
fn times_backwards(record: &mut CaseRecord, random: &mut Rng) -> Spoiled {
    let chosen = record.workers[random.usize(..record.workers.len())].clone();
    let of_it = record.history.iter_mut();
    let mut of_it: Vec<_> = of_it.filter(|event| event.worker == chosen).collect();
    if of_it.len() < 3 {
        return Spoiled::Not;
    }
    let first = random.usize(1..of_it.len());
    let gap = of_it[first].at_ns - of_it[first - 1].at_ns;
    let back = gap + 10 * MS + random.u64(..2_000 * MS);
    let last = match random.bool() {
        true => first + 1,
        false => of_it.len(),
    };
    for event in &mut of_it[first..last] {
        event.at_ns = event.at_ns.saturating_sub(back);
    }
    Spoiled::Surely
}
