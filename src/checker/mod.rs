//! Pure judges: a record goes in, a judgement comes out.
//!
//! Nothing here reads a file, asks a clock or knows a lock server, so a run can
//! be judged again on any machine, as often as anybody likes.
//!
//! Four things are kept apart, because mixing them accuses the innocent: what the
//! resource's own log proves, whether the lock kept its promises, what the workers
//! believed about their holds (overlaps), and what the record cannot tell (doubts).
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

use crate::model::{
    Ability, CaseRecord, CaseVerdict, Doubt, DoubtReason, EventKind, Held, Judgement, Story,
    Violation, ViolationKind,
};
use disturbance::Disturbances;
use episodes::Episodes;
use explain::Evidence;
use holds::Holds;
use names::Names;
use positions::Positions;
use servers::Servers;
use sound::Sound;
use std::collections::BTreeSet;

/// Says what happened in a case, without knowing what was expected of it.
pub fn judge(record: &CaseRecord) -> Judgement {
    read(record, judge_read)
}

/// A record as all that is said about it begins with: what is sound in it, and who held what.
#[derive(Clone, Copy)]
struct Read<'e, 'a> {
    sound: &'e Sound<'a>,
    names: &'e Names<'a>,
    positions: &'e Positions<'e>,
    episodes: &'e Episodes<'a>,
    holds: &'e Holds<'a>,
    disturbances: &'e Disturbances<'a>,
    servers: &'e Servers<'e, 'a>,
}

impl<'e, 'a> Read<'e, 'a> {
    fn evidence(&self) -> Evidence<'e, 'a> {
        Evidence {
            sound: self.sound,
            holds: &self.holds.all,
            positions: self.positions,
            names: self.names,
            servers: self.servers,
        }
    }
}

fn read<T>(record: &CaseRecord, tell: impl FnOnce(Read<'_, '_>) -> T) -> T {
    let sound = Sound::of(record);
    let names = Names::new(&sound.history, &record.log);
    let positions = Positions::of(&sound.log);
    let episodes = episodes::of(&sound.faults);
    let holds = holds::of(&sound, &episodes);
    let disturbances = Disturbances::new(record, &episodes);
    let servers = Servers::of(&sound, &holds.all, &episodes, disturbances.of_servers());
    tell(Read {
        sound: &sound,
        names: &names,
        positions: &positions,
        episodes: &episodes,
        holds: &holds,
        disturbances: &disturbances,
        servers: &servers,
    })
}

fn judge_read(read: Read<'_, '_>) -> Judgement {
    let Read {
        sound,
        names,
        positions,
        episodes,
        holds,
        disturbances,
        servers,
    } = read;
    let record = sound.record;
    let excuses = lock_rules::Excuses::of(record, &holds.all, episodes, servers, disturbances);
    let case = lock_rules::Case {
        record,
        holds,
        episodes,
        servers,
        disturbances,
        excuses: &excuses,
    };

    let mut doubts = completeness::doubts(sound, episodes);
    let is_complete = doubts.is_empty() && sound.doubts.is_empty();
    doubts.extend(sound.doubts.iter().cloned());
    doubts.extend(fault_doubts::doubts(record, episodes));

    let mut violations = log_rules::violations(sound, names);
    let acknowledged = acknowledged::judge(sound, positions, names);
    violations.extend(acknowledged.violations);
    let fates = fates::of(sound, episodes);
    violations.extend(fates.violations);
    let mut open_keys = acknowledged.cut_keys;
    open_keys.extend(&fates.late_keys);
    violations.extend(final_value::violations(sound, &open_keys));
    violations.extend(content::violations(sound, positions, names, is_complete));
    violations.retain(|violation| !rests_on_an_odd_owner(violation, sound, positions));
    violations.sort_by_key(|violation| (violation.row, violation.kind));
    doubts.extend(acknowledged.doubts);
    doubts.extend(fates.doubts);
    doubts.extend(metric::doubt(sound));

    let breaks = lock_rules::breaks(&case);
    let (excused, broken): (Vec<_>, Vec<_>) = breaks.iter().partition(|it| it.excuse.is_some());
    let excused: Vec<_> = excused
        .into_iter()
        .map(lock_rules::Break::violation)
        .collect();
    let of_log = violations.len();
    violations.extend(broken.into_iter().map(lock_rules::Break::violation));

    let overlaps = overlap::overlaps(&holds.all);
    let mut tally = counts::tally(sound, &holds.all, servers, &overlaps, names);
    tally.counts.contended = lock_rules::contended(&case);
    tally.counts.excused = excused.len() as u64;
    let lacks = lacks(record);
    Judgement {
        stories: explain::stories(&read.evidence(), &violations[..of_log], &breaks),
        promises: promises::states(&case, &breaks, tally.counts.contended, &lacks),
        lock_servers_seen: servers.saw_anything(),
        measures: measures::of(sound, holds, episodes),
        counts: tally.counts,
        last_writers: tally.last_writers,
        violations,
        excused,
        overlaps: overlaps.named,
        doubts,
        lacks,
    }
}

/// How it came to what was expected and did not come, or came and was not expected.
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
    read(record, |read| {
        explain::misses(&read.evidence(), read.holds, judgement, verdict, &missed)
    })
}

/// Whether a rule told holds apart by an owner that stands for two of them.
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

/// What the harness itself has said.
pub fn gaps(record: &CaseRecord) -> Vec<Doubt> {
    let gaps = record.gaps.iter();
    gaps.map(|gap| Doubt::new(DoubtReason::Gap, gap.text.clone()))
        .collect()
}

/// What this kind of lock cannot do, by its workers' own word. A foreign worker that
/// never says that a lease is lost has no such word either.
fn lacks(record: &CaseRecord) -> Vec<Ability> {
    let mut lacks = BTreeSet::new();
    let mut said_lost = false;
    for event in &record.history {
        match &event.kind {
            EventKind::Ready { lacks: told } => lacks.extend(told.iter().copied()),
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

/// Who held what and for how long, in the order of the beginnings: as the judge
/// sees it, for whoever wants to draw it.
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
