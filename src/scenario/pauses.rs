//! Pauses that can begin, can end, and can be as long as they claim.

use super::draft::{Bound, DraftAction, DraftEntry};
use super::validate::Check;
use crate::model::format_duration;
use crate::yaml::{At, Report};
use std::time::Duration;

pub fn check(scenario: &Check<'_>, entry: &DraftEntry, report: &mut Report) {
    let Some(action) = &entry.action else { return };
    let target = action.target();
    if scenario.find(&target.value).is_none() {
        let workers = scenario.draft.workers.iter();
        let workers = workers.map(|worker| worker.name.value.as_str());
        report.unknown(target.place, "worker", &target.value, workers);
        return;
    }
    if let Some(after) = &entry.after {
        scenario.fits_the_deadline(after, report);
    }
    let timeline = &scenario.draft.timeline;
    match action {
        DraftAction::Pause {
            lasting,
            longer_than,
            ..
        } => {
            if let Some(lasting) = lasting {
                scenario.fits_the_deadline(lasting, report);
            }
            let resume = timeline.iter().find(|other| other.resumes(&target.value));
            // An action that could not be read may well be the resume.
            let all_read = timeline.iter().all(|other| other.action.is_some());
            if all_read {
                ends_once(target, lasting, resume, report);
            }
            if let Some(At {
                place,
                value: Bound::Fixed(bound),
            }) = longer_than
            {
                let bound = At {
                    place: *place,
                    value: *bound,
                };
                scenario.fits_the_deadline(&bound, report);
            }
            if let (Some(bound), Some(ttl)) = (longer_than, scenario.draft.ttl()) {
                long_enough(entry, lasting, resume, bound.value, ttl.value, report);
            }
        }
        DraftAction::Resume { .. } => {
            let pauses: Vec<&DraftEntry> = timeline
                .iter()
                .filter(|other| other.pauses(&target.value))
                .collect();
            can_come(entry, target, &pauses, report);
        }
    }
}

fn ends_once(
    target: &At<String>,
    lasting: &Option<At<Duration>>,
    resume: Option<&DraftEntry>,
    report: &mut Report,
) {
    let name = &target.value;
    match (lasting, resume) {
        (None, None) => report.add(
            target.place,
            format!(
                "nothing resumes `{name}`; add `for: DURATION` or an entry with `resume: {name}`"
            ),
        ),
        (Some(lasting), Some(_)) => report.add(
            lasting.place,
            format!("`{name}` is resumed by `for` and by an entry; keep one of them"),
        ),
        _ => {}
    }
}

/// A worker that stands still brings no event about; the event that paused it
/// came before, and `paused` is told by the harness.
fn can_come(resume: &DraftEntry, target: &At<String>, pauses: &[&DraftEntry], report: &mut Report) {
    if pauses.is_empty() {
        report.add(target.place, format!("nothing pauses `{}`", target.value));
        return;
    }
    let Some(when) = &resume.when else { return };
    let same = |pause: &&DraftEntry| pause.when.as_ref().map(|at| &at.value) == Some(&when.value);
    let came_before = pauses.iter().any(same);
    let event = &when.value;
    if event.source == target.value && event.event != "paused" && !came_before {
        let message = format!(
            "`{event}` never comes: worker `{}` stands still until this resumes it",
            target.value
        );
        report.add(when.place, message);
    }
}

fn long_enough(
    pause: &DraftEntry,
    lasting: &Option<At<Duration>>,
    resume: Option<&DraftEntry>,
    bound: Bound,
    ttl: Duration,
    report: &mut Report,
) {
    let (bound, name) = match bound {
        Bound::Ttl => (ttl, "the TTL of "),
        Bound::Fixed(fixed) => (fixed, ""),
    };
    let length = lasting.clone().or_else(|| length_by_resume(pause, resume?));
    if let Some(length) = length
        && length.value <= bound
    {
        let message = format!(
            "a pause of {} cannot exceed {name}{}",
            format_duration(length.value),
            format_duration(bound)
        );
        report.add(length.place, message);
    }
}

/// Known where the resume comes a fixed time after the event of the pause, or
/// after the pause itself.
fn length_by_resume(pause: &DraftEntry, resume: &DraftEntry) -> Option<At<Duration>> {
    let after = |entry: &DraftEntry| entry.after.as_ref().map_or(Duration::ZERO, |at| at.value);
    let (when, pause_when) = (resume.when.as_ref()?, pause.when.as_ref()?);
    let counted_from = if when.value == pause_when.value {
        after(pause)
    } else if when.value.event == "paused" && pause.pauses(&when.value.source) {
        Duration::ZERO
    } else {
        return None;
    };
    Some(At {
        place: resume.after.as_ref().map_or(resume.place, |at| at.place),
        value: after(resume).saturating_sub(counted_from),
    })
}
