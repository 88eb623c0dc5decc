//! Checks that pauses and freezes can begin, can end, and can be as long as they claim.

use super::times::taken_by;
use super::*;
use crate::model::format_duration;
use crate::scenario::draft::{Bound, DraftEnd};

/// Returns the step that ends a stop of a node, with its entry: one in the same entry, else the
/// first in the file.
fn find_end<'a>(
    check: &Check<'a>,
    entry: &DraftEntry,
    stop: FaultKind,
    node: &str,
) -> Option<(&'a DraftEntry, &'a DraftEnd)> {
    let all = check.draft.timeline.iter().flat_map(|entry| {
        let steps = entry.all_steps().into_iter();
        steps.map(move |step| (entry, step))
    });
    let fits = all.filter_map(|(entry, step)| match step {
        Step::End(end) if end.ends(stop, node) => Some((entry, end)),
        _ => None,
    });
    fits.min_by_key(|(other, _)| other.place != entry.place)
}

pub fn check(
    check: &Check<'_>,
    entry: &DraftEntry,
    fault: &DraftFault,
    lasting: Option<&At<Span>>,
    report: &mut Report,
) {
    let Some(end) = fault.kind.continued_by() else {
        return;
    };
    let longer_than = fault.longer_than.as_ref();
    if let Some(At {
        place,
        value: Bound::Fixed(bound),
    }) = longer_than
    {
        check.fits_the_deadline(*place, *bound, report);
    }
    for node in fault.nodes() {
        if check.who(&node.value).is_none() {
            continue;
        }
        let by_step = find_end(check, entry, fault.kind, &node.value);
        if check.draft.timeline_is_whole() {
            let ends = (lasting, end, by_step.is_some());
            ends_once(check, entry, node, ends, report);
        }
        let length = match lasting {
            Some(lasting) => Some((lasting.place, lasting.value.from)),
            None => by_step.and_then(|by| length_by_end((entry, fault), by)),
        };
        let ttl = check.draft.ttl_of(&node.value);
        if let (Some(bound), Some(ttl), Some(length)) = (longer_than, ttl, length) {
            long_enough(fault.kind, length, bound.value, ttl, report);
        }
    }
}

fn ends_once(
    check: &Check<'_>,
    entry: &DraftEntry,
    node: &At<String>,
    (lasting, undo, by_step): (Option<&At<Span>>, FaultKind, bool),
    report: &mut Report,
) {
    let healed = entry.name.as_ref().filter(|name| is_healed(check, name));
    let (name, undoes) = (&node.value, undo.node_event().unwrap_or_default());
    match (lasting, by_step, healed) {
        (None, false, None) => {
            let way = match check.who(name) {
                Some(Role::Leader) => "give the entry a name and heal it".to_owned(),
                _ => format!("an entry with `{undo}: {name}`"),
            };
            let message = format!("nothing {undo}s `{name}`; add `for: DURATION` or {way}");
            report.add(node.place, message);
        }
        (Some(lasting), true, _) => {
            let message =
                format!("`{name}` is {undoes} by `for` and by a `{undo}`; keep one of them");
            report.add(lasting.place, message);
        }
        // If another fault of the entry stays, the heal is for that fault.
        (Some(lasting), false, Some(healed)) if !anything_stays(entry) => {
            let message = format!(
                "`{name}` is {undoes} by `for` and by `heal: {}`; keep one of them",
                healed.value
            );
            report.add(lasting.place, message);
        }
        _ => {}
    }
}

fn is_healed(check: &Check<'_>, name: &At<String>) -> bool {
    let mut steps = check.draft.timeline.iter().flat_map(DraftEntry::all_steps);
    steps.any(|step| matches!(step, Step::Heal { entry } if entry.value == name.value))
}

fn anything_stays(entry: &DraftEntry) -> bool {
    let mut faults = entry.all_steps().into_iter().filter_map(DraftStep::fault);
    faults.any(DraftFault::stays)
}

/// Checks a resume or a thaw: its node must exist and may be stopped, and its event must be able
/// to come while the node is stopped.
pub fn check_end(check: &Check<'_>, entry: &DraftEntry, end: &DraftEnd, report: &mut Report) {
    let DraftEnd { by, node, .. } = end;
    let Some(kind) = by.continues() else { return };
    if node.value == LEADER && check.who(LEADER) == Some(Role::Leader) {
        let message = format!(
            "another one leads by now; give the {kind} a `for`, or its entry a name and `heal` that"
        );
        report.add(node.place, message);
        return;
    }
    if check.node(node, report).is_none() {
        return;
    }
    let begins = |entry: &&DraftEntry| {
        let mut faults = entry.all_steps().into_iter().filter_map(DraftStep::fault);
        faults.any(|fault| fault.kind == kind && fault.may_affect(&node.value))
    };
    let causes: Vec<&DraftEntry> = check.draft.timeline.iter().filter(begins).collect();
    if causes.is_empty() {
        if check.draft.timeline_is_whole() {
            let message = format!("nothing {kind}s `{}`", node.value);
            report.add(node.place, message);
        }
        return;
    }
    // A stopped worker causes no event of its own. The event that triggered the stop came before,
    // and the harness reports the faults of the worker.
    let Some(when) = &entry.when else { return };
    let same = |cause: &&DraftEntry| cause.when.as_ref().map(|at| &at.value) == Some(&when.value);
    let event = &when.value;
    let his_own = event.source == node.value && EventKind::NAMES.contains(&event.event.as_str());
    if his_own && !causes.iter().any(same) {
        let message = format!(
            "`{event}` never comes: worker `{}` stands still until this {by}s it",
            node.value
        );
        report.add(when.place, message);
    }
}

fn long_enough(
    kind: FaultKind,
    (place, length): (Place, Duration),
    bound: Bound,
    ttl: Duration,
    report: &mut Report,
) {
    let (bound, name) = match bound {
        Bound::Ttl => (ttl, "the TTL of "),
        Bound::Fixed(fixed) => (fixed, ""),
    };
    if length <= bound {
        let message = format!(
            "a {kind} of {} cannot exceed {name}{}",
            format_duration(length),
            format_duration(bound)
        );
        report.add(place, message);
    }
}

/// Returns the shortest length of a stop. It is known if the end comes a known time after the
/// event of the stop, or after the stop itself.
fn length_by_end(
    (cause, stop): (&DraftEntry, &DraftFault),
    (entry, end): (&DraftEntry, &DraftEnd),
) -> Option<(Place, Duration)> {
    let begins = begin_of(cause, stop.place)?;
    let ends = begin_of(entry, end.place)?;
    if cause.place == entry.place {
        let between = ends.from.checked_sub(begins.from)?;
        return Some((end.place, between));
    }
    if cause.repeats() > 1 || entry.repeats() > 1 {
        return None;
    }
    let place = entry.after.as_ref().map_or(entry.place, |at| at.place);
    let when = entry.when.as_ref().map(|at| &at.value);
    if when == cause.when.as_ref().map(|at| &at.value) {
        return Some((place, ends.from.saturating_sub(begins.to)));
    }
    let when = when?;
    let at_its_event = Some(when.event.as_str()) == stop.kind.node_event();
    (at_its_event && stop.may_affect(&when.source)).then_some((place, ends.from))
}

/// Returns how long after the event of an entry the step at this place begins, in the first round;
/// None inside of a `together`, where that depends on the other steps, and after a wait for an
/// event.
fn begin_of(entry: &DraftEntry, place: Place) -> Option<Span> {
    let is_it = |step: &DraftStep| match step {
        Step::Inject { fault, .. } => fault.place == place,
        Step::End(end) => end.place == place,
        Step::Heal { .. } | Step::Wait { .. } | Step::Await { .. } | Step::Together { .. } => false,
    };
    let at = entry.steps.iter().position(is_it)?;
    let before = &entry.steps[..at];
    if before.iter().any(DraftStep::waits_for_an_event) {
        return None;
    }
    let before = before.iter().map(taken_by);
    Some(before.fold(entry.delay(), |sum, span| Span {
        from: sum.from.saturating_add(span.from),
        to: sum.to.saturating_add(span.to),
    }))
}
