//! Checks that everything which takes time fits into the deadline of a case.

use super::*;
use crate::load::ContendPlan;
use crate::model::format_duration;
use crate::scenario::CALM;
use crate::scenario::draft::{DraftKeyspace, DraftLoad, Repeat};

const DEFAULT_DEADLINE: Duration = Duration::from_secs(60);
const LONGEST_DEADLINE: Duration = Duration::from_secs(60 * 60);
const LONGEST_DURATION: Duration = Duration::from_secs(12 * 60 * 60);
const LONGEST_TTL: Duration = Duration::from_secs(24 * 60 * 60);

/// The time to make a great many keys; how long that really takes is not known.
const FILLING: Duration = Duration::from_secs(60 * 60);

/// Returns the deadline as written, else one that is longer than everything that takes time.
pub fn deadline(draft: &DraftSetup) -> Duration {
    let written = draft.deadline.as_ref().map(|deadline| deadline.value);
    written.unwrap_or_else(|| match &draft.load {
        Some(DraftLoad::Keyspace(keyspace)) => {
            let ttl = draft.ttl().map_or(Duration::ZERO, |ttl| ttl.value);
            let watch = keyspace.watch.as_ref();
            let watch = watch.map_or(Duration::ZERO, |watch| watch.value);
            FILLING.saturating_add(ttl).saturating_add(watch)
        }
        Some(DraftLoad::Contend(contend)) => {
            let to_let_go = ContendPlan::TO_LET_GO.saturating_mul(contend.steps());
            let floor = contend.floor.as_ref().map_or(Duration::ZERO, |at| at.value);
            DEFAULT_DEADLINE
                .saturating_add(takes(draft))
                .saturating_add(to_let_go)
                .saturating_add(floor)
        }
        None => DEFAULT_DEADLINE.saturating_add(takes(draft)),
    })
}

/// Returns the duration; for a load that of all its steps, with the last waits and the last work of
/// each.
fn takes(draft: &DraftSetup) -> Duration {
    let duration = draft.duration.as_ref().map_or(Duration::ZERO, |d| d.value);
    match &draft.load {
        Some(DraftLoad::Contend(contend)) => duration
            .saturating_add(contend.timeout())
            .saturating_add(contend.work().to)
            .saturating_mul(contend.steps()),
        _ => duration,
    }
}

pub fn check(check: &Check<'_>, report: &mut Report) {
    let own = check.draft.workers.iter();
    let own = own.filter_map(|worker| worker.lock.as_ref()?.ttl.as_ref());
    for ttl in check.draft.ttl().into_iter().chain(own) {
        if ttl.value.is_zero() || ttl.value > LONGEST_TTL {
            report.add(ttl.place, "a TTL is longer than 0ms and at most a day");
        } else if check.draft.load.is_none() && ttl.value >= check.deadline {
            let message = format!(
                "a TTL of {} never runs out before the deadline of {}; set `deadline` higher",
                format_duration(ttl.value),
                format_duration(check.deadline)
            );
            report.add(ttl.place, message);
        }
    }
    // Contenders release their locks, and need no TTL to expire.
    if let Some(DraftLoad::Keyspace(keyspace)) = &check.draft.load {
        keyspace_fits(check, keyspace, report);
    }
    if let Some(deadline) = &check.draft.deadline
        && (deadline.value.is_zero() || deadline.value > LONGEST_DEADLINE)
    {
        let message = "a deadline is longer than 0ms and at most an hour";
        report.add(deadline.place, message);
    }
    if let Some(duration) = &check.draft.duration {
        if duration.value.is_zero() || duration.value > LONGEST_DURATION {
            let message = "a duration is longer than 0ms and at most 720m";
            report.add(duration.place, message);
        }
        let goes_on_for = takes(check.draft).saturating_add(CALM);
        check.fits_the_deadline(duration.place, goes_on_for, report);
    }
    for entry in &check.draft.timeline {
        match &entry.repeat {
            Some(repeat) if repeat.value == Repeat::Throughout => {
                goes_on_for_long_enough(check, entry, repeat.place, report);
            }
            _ => entry_fits(check, entry, report),
        }
    }
}

/// Checks the end of a keyspace: it is over when its watch is, or, without one, when its last lock
/// has expired. A deadline that nobody wrote is longer than both.
fn keyspace_fits(check: &Check<'_>, keyspace: &DraftKeyspace, report: &mut Report) {
    let deadline = format_duration(check.deadline);
    match (&keyspace.watch, check.draft.ttl()) {
        (Some(watch), _) if watch.value >= check.deadline => {
            let message = format!(
                "a watch of {} does not fit into the deadline of {deadline}, and begins when the \
                 last key was made; make it shorter, or leave `deadline` out",
                format_duration(watch.value)
            );
            report.add(watch.place, message);
        }
        (None, Some(ttl)) if ttl.value >= check.deadline && ttl.value <= LONGEST_TTL => {
            let message = format!(
                "a keyspace lasts until nothing dead is left, and keys that live {} do not die \
                 within the deadline of {deadline}; give it a `watch`, or leave `deadline` out",
                format_duration(ttl.value)
            );
            report.add(ttl.place, message);
        }
        _ => {}
    }
}

/// Checks `repeat: throughout`, which needs a duration to fill and steps that take time.
fn goes_on_for_long_enough(
    check: &Check<'_>,
    entry: &DraftEntry,
    place: Place,
    report: &mut Report,
) {
    match (&check.draft.duration, &entry.after) {
        (None, _) => {
            let message = "`throughout` lasts as long as the scenario's `duration`; give it one";
            report.add(place, message);
        }
        (Some(duration), Some(after)) if after.value.to >= duration.value => {
            let message = format!(
                "the duration of {} is over by then",
                format_duration(duration.value)
            );
            report.add(after.place, message);
        }
        _ => {}
    }
    if let Some(when) = entry
        .when
        .as_ref()
        .filter(|at| at.value != Trigger::at_the_start())
    {
        let message =
            "the duration counts from the start, and so does `throughout`; leave `when` out";
        report.add(when.place, message);
    }
    parts_fit(check, entry, report);
    let once = entry.steps.iter().map(|step| taken_by(step).from);
    if entry.is_whole && once.sum::<Duration>().is_zero() {
        let message =
            "steps that are repeated throughout have to take time: add a `wait`, or a `for`";
        report.add(place, message);
    }
}

fn entry_fits(check: &Check<'_>, entry: &DraftEntry, report: &mut Report) {
    let before = report.complaints();
    if let Some(after) = &entry.after {
        check.fits_the_deadline(after.place, after.value.to, report);
    }
    parts_fit(check, entry, report);
    // The sum says nothing new if one of its parts is too long already.
    let all = longest(entry);
    if report.complaints() == before && all >= check.deadline {
        let place = entry.repeat.as_ref().map_or(entry.place, |at| at.place);
        let message = format!(
            "together these steps may take {}, and the deadline is {}; set `deadline` higher",
            format_duration(all),
            format_duration(check.deadline)
        );
        report.add(place, message);
    }
}

fn parts_fit(check: &Check<'_>, entry: &DraftEntry, report: &mut Report) {
    for step in entry.all_steps() {
        if let Some(span) = step.length() {
            check.fits_the_deadline(span.place, span.value.to, report);
        }
    }
}

/// Returns the longest time from the event of an entry to the end of its last step.
fn longest(entry: &DraftEntry) -> Duration {
    let each = entry.steps.iter().map(|step| taken_by(step).to);
    let once = each.fold(Duration::ZERO, Duration::saturating_add);
    once.saturating_mul(entry.repeats())
        .saturating_add(entry.delay().to)
}

/// Returns how long a step delays the next one. The time that the proof of a fault takes is not
/// known, and not counted.
pub fn taken_by(step: &DraftStep) -> Span {
    let Step::Together { steps } = step else {
        // The time until an event comes is not known.
        return step.length().map_or(Span::default(), |at| at.value);
    };
    let spans = || steps.iter().map(taken_by);
    Span {
        from: spans().map(|span| span.from).max().unwrap_or_default(),
        to: spans().map(|span| span.to).max().unwrap_or_default(),
    }
}

impl Check<'_> {
    pub fn fits_the_deadline(&self, place: Place, wait: Duration, report: &mut Report) {
        if wait >= self.deadline {
            let message = format!(
                "{} does not fit into the deadline of {}; set `deadline` higher",
                format_duration(wait),
                format_duration(self.deadline)
            );
            report.add(place, message);
        }
    }
}
