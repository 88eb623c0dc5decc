//! Pure judges: a record goes in, a judgement comes out.
//!
//! Nothing here reads a file, asks a clock or knows a lock server, so a run can
//! be judged again on any machine, as often as anybody likes.
//!
//! Three things are kept apart, because mixing them accuses the innocent: what
//! the resource's own log proves (violations), what the workers believed about
//! their holds (overlaps), and what the record cannot tell (doubts).

mod acknowledged;
mod completeness;
mod counts;
mod explain;
mod fates;
mod fault_doubts;
mod final_value;
mod hold_book;
mod holds;
mod log_rules;
mod measures;
mod metric;
mod names;
mod order;
mod overlap;
mod positions;
mod verdict;

pub use verdict::verdict;

use crate::model::{CaseRecord, Held, Judgement};
use names::Names;
use positions::Positions;

/// Says what happened in a case, without knowing what was expected of it.
pub fn judge(record: &CaseRecord) -> Judgement {
    let names = Names::from_history(&record.history);
    let holds = holds::from_record(record);
    let positions = Positions::of(&record.log);

    let mut violations = log_rules::violations(&record.log, &names);
    let acknowledged = acknowledged::judge(record, &positions, &names);
    violations.extend(acknowledged.violations);
    violations.extend(final_value::violations(record));
    violations.sort_by_key(|violation| (violation.row, violation.kind));

    let mut doubts = completeness::doubts(record, &positions);
    doubts.extend(acknowledged.doubts);
    doubts.extend(metric::doubt(record));

    let overlaps = overlap::overlaps(&holds);
    let tally = counts::tally(record, &holds, &overlaps, &names);
    let stories = explain::stories(record, &violations, &holds, &positions, &names);

    Judgement {
        violations,
        overlaps,
        counts: tally.counts,
        measures: measures::of(record, &holds),
        stories,
        doubts,
        last_writers: tally.last_writers,
    }
}

/// Who held what and for how long, in the order of the beginnings: as the judge
/// sees it, for whoever wants to draw it.
pub fn held(record: &CaseRecord) -> Vec<Held> {
    let holds = holds::from_record(record).into_iter();
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
