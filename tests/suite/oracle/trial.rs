//! One history before the judge, and what must be said about it.

use super::defect::Defect;
use super::flaw::{Flaw, Spoiled};
use super::world::{Played, play};
use super::{certain_lock, certain_resource, plain_rules, print, said};
use fencepost::model::{
    CaseRecord, DoubtReason, Judgement, LogRow, Party, Violation, ViolationKind,
};
use fencepost_judge::checker::judge;
use std::collections::BTreeSet;

pub struct Trial {
    pub played: Played,
    log: Vec<LogRow>,
    judgement: Judgement,
    pub spoiled: Option<(Flaw, Spoiled)>,
    /// The defect that was planted and shows.
    pub shows: Option<Defect>,
    pub excused: bool,
    /// In short, and with all that one may want to know.
    pub mistakes: Vec<String>,
}

type Kinds = BTreeSet<ViolationKind>;

/// What a record makes certain, whatever was planted; the rules of the log's order apart.
pub struct Certain {
    /// By the service that broke it.
    pub locks: Vec<(String, Kinds)>,
    pub resource: Kinds,
}

impl Certain {
    pub fn is_empty(&self) -> bool {
        self.resource.is_empty() && self.locks.iter().all(|(_, kinds)| kinds.is_empty())
    }

    fn contains(&self, kind: ViolationKind) -> bool {
        let in_locks = self.locks.iter().any(|(_, kinds)| kinds.contains(&kind));
        in_locks || self.resource.contains(&kind)
    }
}

pub fn certain(played: &Played) -> Certain {
    let record = &played.record;
    let said = said::read(record);
    let services: BTreeSet<&String> = record
        .plan
        .workers
        .values()
        .map(|plan| &plan.service)
        .collect();
    let locks = services.into_iter().map(|service| {
        let kinds = certain_lock::broken(record, &said, service);
        (service.clone(), kinds.into_iter().collect())
    });
    Certain {
        locks: locks.collect(),
        resource: certain_resource::broken(record, &rows(record))
            .into_iter()
            .collect(),
    }
}

fn rows(record: &CaseRecord) -> Vec<LogRow> {
    let rows = record.log.rows.iter();
    rows.map(|row| record.log.written(row)).collect()
}

pub fn of(seed: u64) -> Trial {
    let mut played = play(seed);
    let log = rows(&played.record);
    let certain = certain(&played);
    let spoiled = played.settings.flaw;
    let spoiled = spoiled.map(|flaw| (flaw, flaw.spoil(&mut played)));
    let judgement = judge(&played.record);
    let mut trial = Trial {
        shows: None,
        excused: false,
        mistakes: Vec::new(),
        played,
        log,
        judgement,
        spoiled,
    };
    match spoiled {
        Some((_, spoiled)) if spoiled != Spoiled::Not => trial.hold_spoiled(spoiled),
        _ => trial.hold_whole(&certain),
    }
    trial
}

impl Trial {
    pub fn report(&self) -> String {
        let seed = self.played.settings.seed;
        let defect = self.played.settings.defect;
        let mistakes = self.mistakes.join("\n");
        let history = print::report(&self.played, &self.log, &self.judgement);
        format!(
            "seed {seed}, defect {defect:?}, flaw {:?}\n{mistakes}\n{history}",
            self.spoiled
        )
    }

    fn mistake(&mut self, text: String) {
        self.mistakes.push(text);
    }

    fn found_in_log(&self) -> BTreeSet<(u64, ViolationKind)> {
        let found = self.judgement.violations.iter();
        let found = found.filter(|violation| violation.kind.party() == Party::Order);
        found.map(|v| (v.row, v.kind)).collect()
    }

    fn plain_reading(&self) -> BTreeSet<(u64, ViolationKind)> {
        let plain = plain_rules::violations(&self.log, self.played.settings.fence);
        plain.into_iter().collect()
    }

    /// Of a record with an imperfection nothing follows but doubt.
    fn hold_spoiled(&mut self, spoiled: Spoiled) {
        let (found, plain) = (self.found_in_log(), self.plain_reading());
        let invented = kinds_of(found.difference(&plain));
        if !invented.is_empty() {
            self.mistake(format!("an imperfect log is accused of {invented:?}"));
        }
        let all = self.judgement.violations.iter();
        let all = all.chain(&self.judgement.excused);
        let accused = all.filter(|violation| violation.kind.party() != Party::Order);
        let accused: Kinds = accused.map(|violation| violation.kind).collect();
        if !accused.is_empty() {
            self.mistake(format!("an imperfect record is accused of {accused:?}"));
        }
        if spoiled == Spoiled::Surely && self.judgement.doubts.is_empty() {
            self.mistake("an imperfect record leaves no doubt".to_owned());
        }
    }

    fn hold_whole(&mut self, certain: &Certain) {
        let (found, plain) = (self.found_in_log(), self.plain_reading());
        let missed = kinds_of(plain.difference(&found));
        let invented = kinds_of(found.difference(&plain));
        if !missed.is_empty() || !invented.is_empty() {
            self.mistake(format!(
                "in the log's order the judge misses {missed:?} and invents {invented:?}"
            ));
        }
        let reasons = self.judgement.doubts.iter().map(|doubt| &doubt.reason);
        let fair = |reason: &DoubtReason| {
            let planted = self.planted();
            planted.is_some_and(|defect| defect.leaves_doubt(reason))
        };
        let unfair: Vec<_> = reasons.filter(|reason| !fair(reason)).collect();
        if !unfair.is_empty() {
            let text = format!("a whole record is doubted: {unfair:?}");
            self.mistake(text);
        }
        self.check_innocence();
        self.check_excuses();
        self.excused = !self.judgement.excused.is_empty();
        for (service, kinds) in &certain.locks {
            for kind in kinds {
                self.check_found(*kind, Some(service));
            }
        }
        for kind in &certain.resource {
            self.check_found(*kind, None);
        }
        self.shows = self.planted().filter(|defect| {
            let mut meant = defect.meant().iter();
            let in_log = |kind: &ViolationKind| plain.iter().any(|(_, found)| found == kind);
            meant.any(|kind| certain.contains(*kind) || in_log(kind))
        });
    }

    fn planted(&self) -> Option<Defect> {
        let defect = self.played.settings.defect;
        defect.filter(|_| !self.played.truth.planted.is_empty())
    }

    fn is_excused(&self, service: &str) -> bool {
        let mut excuses = self.played.truth.excuses.iter();
        excuses.any(|(index, _)| ["redis", "etcd"][*index] == service)
    }

    /// The service that a violation is about, by the workers that it names.
    fn service(&self, violation: &Violation) -> Option<&str> {
        let worker = violation.workers.first()?;
        let plan = self.played.record.plan.workers.get(worker)?;
        Some(&plan.service)
    }

    fn check_found(&mut self, kind: ViolationKind, service: Option<&str>) {
        let meant = self.planted().map_or(&[][..], Defect::meant);
        let explained = self.planted().map_or(&[][..], Defect::explains);
        let mut alternatives = vec![kind];
        match kind {
            kind if meant.contains(&kind) => alternatives.extend(meant),
            // What follows from the defect need not be told of beside it.
            kind if explained.contains(&kind) => alternatives.extend(meant),
            _ => {}
        }
        match kind {
            // A token that was granted before has not grown either.
            ViolationKind::TokenNotGrowing => alternatives.push(ViolationKind::TokenGrantedTwice),
            // A write that stands nowhere is lost, whoever was told its position.
            ViolationKind::PositionNamedTwice => {
                alternatives.push(ViolationKind::AcknowledgedWriteLost);
            }
            _ => {}
        }
        let is_in = |found: &[Violation]| {
            let mut found = found.iter();
            found.any(|violation| {
                let about = self.service(violation);
                let about = service.is_none() || about.is_none() || about == service;
                alternatives.contains(&violation.kind) && about
            })
        };
        // A break that follows from another one may be excused by that.
        let may_be_excused =
            explained.contains(&kind) || service.is_some_and(|service| self.is_excused(service));
        let found =
            is_in(&self.judgement.violations) || may_be_excused && is_in(&self.judgement.excused);
        if !found {
            self.mistake(format!("the record shows {kind}, and it was not found"));
        }
    }

    fn check_innocence(&mut self) {
        let explained = self.explained();
        let violations = self.judgement.violations.iter();
        let accused = violations.filter(|violation| {
            let of_excused = self.service(violation).is_some_and(|s| self.is_excused(s));
            let is_of_lock = violation.kind.party() == Party::Lock;
            violation.kind.party() != Party::Order
                && (!explained.contains(&violation.kind) || of_excused && is_of_lock)
        });
        let accused: Kinds = accused.map(|violation| violation.kind).collect();
        if !accused.is_empty() {
            self.mistake(format!("the innocent is accused of {accused:?}"));
        }
    }

    fn explained(&self) -> Vec<ViolationKind> {
        let planted = self.planted();
        let explained = planted.map(|defect| [defect.meant(), defect.explains()].concat());
        explained.unwrap_or_default()
    }

    fn check_excuses(&mut self) {
        let explained = self.planted().map_or(&[][..], Defect::explains);
        let excused = self.judgement.excused.iter();
        let wrong = excused.filter(|violation| {
            let is_of_lock = violation.kind.party() == Party::Lock;
            let by_fault = match self.service(violation) {
                Some(service) => self.is_excused(service),
                None => !self.played.truth.excuses.is_empty(),
            };
            !(is_of_lock && by_fault || explained.contains(&violation.kind))
        });
        let wrong: Kinds = wrong.map(|violation| violation.kind).collect();
        if !wrong.is_empty() {
            self.mistake(format!("excused without a reason: {wrong:?}"));
        }
    }
}

fn kinds_of<'a>(rows: impl Iterator<Item = &'a (u64, ViolationKind)>) -> Kinds {
    rows.map(|(_, kind)| *kind).collect()
}
