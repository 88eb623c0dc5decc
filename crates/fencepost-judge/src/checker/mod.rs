//! Pure judges: a record goes in, a judgement comes out.
//!
//! Nothing here reads a file, asks a clock or knows a lock server, so a run can be judged
//! again on any machine, any number of times.
//!
//! Four things are kept apart, because mixing them accuses the innocent: what the
//! resource's own log proves, whether the lock kept its promises, what the workers
//! believed about their holds (overlaps), and what the record does not show (doubts).
//! docs/judge.md says how each promise is decided.

mod acknowledged;
mod completeness;
mod content;
mod counts;
mod disturbance;
mod episodes;
mod explain;
mod fates;
mod fault_doubts;
mod final_value;
mod hold_book;
mod holds;
mod lock_rules;
mod log_order;
mod log_rules;
mod measures;
mod metric;
mod names;
mod order;
mod overlap;
mod positions;
mod promises;
mod servers;
mod sound;
mod verdict;

pub use verdict::verdict;

use crate::model::*;
use acknowledged::token_words;
use counts::is_stale;
use disturbance::{Disturbances, Span, first_touching, merged, touch};
use episodes::{Episode, Episodes};
use holds::{Ask, AskEnd, Grant, Hold, Holds};
use lock_rules::{Break, Excuses};
use names::{Names, Writer};
use overlap::Overlaps;
use positions::Positions;
use servers::{HEARD_WITHIN_NS, Servers, StayEnd};
use sound::Sound;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Judges what happened in a case, without knowing what was expected of it.
pub fn judge(record: &CaseRecord) -> Judgement {
    read(record, |case| judge_case(&case))
}

/// The input of rules and stories: the sound parts of a record, and the holds.
struct Case<'e, 'a> {
    record: &'a CaseRecord,
    sound: &'e Sound<'a>,
    names: &'e Names<'a>,
    positions: &'e Positions<'e>,
    episodes: &'e Episodes<'a>,
    holds: &'e Holds<'a>,
    disturbances: &'e Disturbances<'a>,
    servers: &'e Servers<'e, 'a>,
    excuses: &'e Excuses<'a>,
}

fn read<T>(record: &CaseRecord, tell: impl FnOnce(Case<'_, '_>) -> T) -> T {
    let sound = &Sound::of(record);
    let episodes = &episodes::of(&sound.faults);
    let holds = &holds::of(sound, episodes);
    let disturbances = &Disturbances::new(record, episodes);
    let servers = &Servers::of(sound, &holds.all, episodes, disturbances.of_servers());
    tell(Case {
        record,
        sound,
        names: &Names::new(&sound.history, &record.log),
        positions: &Positions::of(&sound.log),
        episodes,
        holds,
        disturbances,
        servers,
        excuses: &Excuses::of(record, &holds.all, episodes, servers, disturbances),
    })
}

fn judge_case(case: &Case) -> Judgement {
    let (record, sound) = (case.record, case.sound);
    let mut doubts = completeness::doubts(sound, case.episodes);
    let is_complete = doubts.is_empty() && sound.doubts.is_empty();
    doubts.extend(sound.doubts.iter().cloned());
    doubts.extend(fault_doubts::doubts(record, case.episodes));

    let mut violations = log_rules::violations(sound, case.names);
    let acknowledged = acknowledged::judge(case);
    violations.extend(acknowledged.violations);
    let fates = fates::of(sound, case.episodes);
    violations.extend(fates.violations);
    let mut open_keys = acknowledged.cut_keys;
    open_keys.extend(&fates.late_keys);
    violations.extend(final_value::violations(sound, &open_keys));
    violations.extend(content::violations(case, is_complete));
    violations.retain(|violation| !rests_on_an_odd_owner(violation, sound, case.positions));
    violations.sort_by_key(|violation| (violation.row, violation.kind));
    doubts.extend(acknowledged.doubts);
    doubts.extend(fates.doubts);
    doubts.extend(metric::doubt(sound));

    let breaks = lock_rules::breaks(case);
    let (excused, broken): (Vec<_>, Vec<_>) = breaks.iter().partition(|it| it.excuse.is_some());
    let excused: Vec<_> = excused.into_iter().map(Break::violation).collect();
    let of_log = violations.len();
    violations.extend(broken.into_iter().map(Break::violation));

    let overlaps = overlap::overlaps(&case.holds.all);
    let mut tally = counts::tally(case, &overlaps);
    tally.counts.contended = lock_rules::contended(case);
    tally.counts.excused = excused.len() as u64;
    let lacks = lacks(record);
    Judgement {
        stories: explain::stories(case, &violations[..of_log], &breaks),
        promises: promises::states(case, &breaks, tally.counts.contended, &lacks),
        lock_servers_seen: case.servers.saw_anything(),
        measures: measures::of(sound, case.holds, case.episodes),
        counts: tally.counts,
        last_writers: tally.last_writers,
        violations,
        excused,
        overlaps: overlaps.named,
        doubts,
        lacks,
    }
}

/// Returns stories of the missed expectations.
pub fn stories_of_misses(
    record: &CaseRecord,
    judgement: &Judgement,
    verdict: &CaseVerdict,
) -> Vec<Story> {
    let missed = verdict.findings.iter().filter(|finding| !finding.held);
    let missed: Vec<&str> = missed.map(|finding| finding.what.as_str()).collect();
    if missed.is_empty() {
        return Vec::new();
    }
    read(record, |case| {
        explain::misses(&case, judgement, verdict, &missed)
    })
}

/// Returns whether a violation depends on an owner id that two holds share.
fn rests_on_an_odd_owner(violation: &Violation, sound: &Sound, positions: &Positions) -> bool {
    let by_tokens_alone = [
        ViolationKind::StaleAccept,
        ViolationKind::TokenRegression,
        ViolationKind::RefusedWithoutReason,
        ViolationKind::UntrueRefusal,
        ViolationKind::ValueNotAccepted,
    ];
    if sound.odd_owners.is_empty() || by_tokens_alone.contains(&violation.kind) {
        return false;
    }
    let rows = [Some(violation.row), violation.against];
    let rows = rows.into_iter().flatten();
    let mut owners = rows.filter_map(|seq| sound.record.log.owner_of(positions.row(seq)?));
    owners.any(|owner| sound.odd_owners.contains(owner))
}

/// Returns the gaps that the harness itself has recorded.
pub fn gaps(record: &CaseRecord) -> Vec<Doubt> {
    let gaps = record.gaps.iter();
    gaps.map(|gap| Doubt::new(DoubtReason::Gap, gap.text.clone()))
        .collect()
}

/// Returns the abilities that this lock lacks, as its workers report. A foreign worker
/// that never reports a lost lease lacks that ability, too.
fn lacks(record: &CaseRecord) -> Vec<Ability> {
    let mut lacks = BTreeSet::new();
    let mut said_lost = false;
    for event in &record.history {
        match &event.kind {
            EventKind::Ready { lacks: told, .. } => lacks.extend(told.iter().copied()),
            EventKind::Lost { .. } => said_lost = true,
            _ => {}
        }
    }
    let mut workers = record.plan.workers.values();
    if !said_lost && workers.any(|plan| !plan.is_ours) {
        lacks.insert(Ability::Lost);
    }
    lacks.into_iter().collect()
}

/// Returns the holds as the judge sees them, in the order of their beginnings, for
/// drawings.
pub fn held(record: &CaseRecord) -> Vec<Held> {
    let sound = Sound::of(record);
    let episodes = episodes::of(&sound.faults);
    let holds = holds::of(&sound, &episodes).all.into_iter();
    let granted = holds.filter_map(|hold| {
        let grant = hold.grant?;
        Some(Held {
            worker: hold.worker.to_owned(),
            key: hold.key.to_owned(),
            token: grant.token,
            owner: grant.owner.to_owned(),
            from_ns: hold.from_ns,
            to_ns: hold.to_ns,
            ended: hold.ended,
        })
    });
    granted.collect()
}
