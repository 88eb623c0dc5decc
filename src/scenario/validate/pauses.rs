//! Pauses and freezes that can begin, can end, and can be as long as they claim.

use super::Check;
use super::nodes::Who;
use super::times::taken_by;
use crate::model::{EventKind, FaultKind, LEADER, format_duration};
use crate::scenario::Span;
use crate::scenario::draft::{Befalls, Bound, DraftAction, DraftEntry, DraftFault, DraftStep};
use crate::yaml::{At, Place, Report};
use std::time::Duration;

/// What lets a target of this fault go on again.
fn undo_of(kind: FaultKind) -> Option<FaultKind> {
    match kind {
        FaultKind::Pause => Some(FaultKind::Resume),
        FaultKind::Freeze => Some(FaultKind::Thaw),
        _ => None,
    }
}

fn is_undo(step: &DraftStep, undo: FaultKind, node: &str) -> bool {
    match (&step.action, undo) {
        (DraftAction::Resume(target), FaultKind::Resume)
        | (DraftAction::Thaw(target), FaultKind::Thaw) => target.value == node,
        _ => false,
    }
}

/// The step that undoes a fault on a node, with its entry: one that follows in
/// the same entry, else the first in the file.
fn find_undo<'a>(
    check: &Check<'a>,
    entry: &DraftEntry,
    undo: FaultKind,
    node: &str,
) -> Option<(&'a DraftEntry, &'a DraftStep)> {
    let all = check.draft.timeline.iter().flat_map(|entry| {
        let steps = entry.all_steps().into_iter();
        steps.map(move |step| (entry, step))
    });
    let fits = all.filter(|(_, step)| is_undo(step, undo, node));
    fits.min_by_key(|(other, _)| other.place != entry.place)
}

pub fn check(
    check: &Check<'_>,
    entry: &DraftEntry,
    step: &DraftStep,
    fault: &DraftFault,
    report: &mut Report,
) {
    let Some(undo) = undo_of(fault.kind) else {
        return;
    };
    let longer_than = match &fault.befalls {
        Befalls::Node { how, .. } => how.as_ref().and_then(|how| how.longer_than()),
        _ => None,
    };
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
        let by_step = find_undo(check, entry, undo, &node.value);
        if check.draft.timeline_is_whole() {
            ends_once(
                check,
                entry,
                fault,
                node,
                by_step.map(|(_, step)| step),
                report,
            );
        }
        let length = match &fault.lasting {
            Some(lasting) => Some((lasting.place, lasting.value.from)),
            None => by_step.and_then(|by| length_by_undo((entry, step), by, fault.kind)),
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
    fault: &DraftFault,
    node: &At<String>,
    by_step: Option<&DraftStep>,
    report: &mut Report,
) {
    let Some(undo) = undo_of(fault.kind) else {
        return;
    };
    let healed = entry.name.as_ref().filter(|name| is_healed(check, name));
    let (name, undoes) = (&node.value, past(undo));
    match (&fault.lasting, by_step, healed) {
        (None, None, None) => {
            let way = match check.who(name) {
                Some(Who::Leader) => "give the entry a name and heal it".to_owned(),
                _ => format!("an entry with `{undo}: {name}`"),
            };
            let message = format!("nothing {undo}s `{name}`; add `for: DURATION` or {way}");
            report.add(node.place, message);
        }
        (Some(lasting), Some(_), _) => {
            let message =
                format!("`{name}` is {undoes} by `for` and by a `{undo}`; keep one of them");
            report.add(lasting.place, message);
        }
        // Beside something that stays, the heal is for that.
        (Some(lasting), None, Some(healed)) if !anything_stays(entry) => {
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
    steps.any(|step| matches!(&step.action, DraftAction::Heal(entry) if entry.value == name.value))
}

fn anything_stays(entry: &DraftEntry) -> bool {
    let mut faults = entry.all_steps().into_iter().filter_map(DraftStep::fault);
    faults.any(DraftFault::stays)
}

fn past(undo: FaultKind) -> &'static str {
    undo.node_event().unwrap_or_default()
}

/// A resume or thaw: of somebody who exists and may stand still, at an event
/// that can come while he does.
pub fn check_undo(
    check: &Check<'_>,
    entry: &DraftEntry,
    step: &DraftStep,
    node: &At<String>,
    report: &mut Report,
) {
    let (kind, undo) = match &step.action {
        DraftAction::Thaw(_) => (FaultKind::Freeze, FaultKind::Thaw),
        _ => (FaultKind::Pause, FaultKind::Resume),
    };
    if node.value == LEADER && check.who(LEADER) == Some(Who::Leader) {
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
        faults.any(|fault| fault.kind == kind && fault.may_befall(&node.value))
    };
    let causes: Vec<&DraftEntry> = check.draft.timeline.iter().filter(begins).collect();
    if causes.is_empty() {
        if check.draft.timeline_is_whole() {
            let message = format!("nothing {kind}s `{}`", node.value);
            report.add(node.place, message);
        }
        return;
    }
    // Somebody who stands still brings no event about; the event that stopped
    // him came before, and what befalls him is told by the harness.
    let Some(when) = &entry.when else { return };
    let same = |cause: &&DraftEntry| cause.when.as_ref().map(|at| &at.value) == Some(&when.value);
    let event = &when.value;
    let his_own = event.source == node.value && EventKind::NAMES.contains(&event.event.as_str());
    if his_own && !causes.iter().any(same) {
        let message = format!(
            "`{event}` never comes: worker `{}` stands still until this {undo}s it",
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

/// The shortest it can be, known where the undo comes a known time after the
/// event of the pause, or after the pause itself.
fn length_by_undo(
    (cause, pause): (&DraftEntry, &DraftStep),
    (entry, undo): (&DraftEntry, &DraftStep),
    kind: FaultKind,
) -> Option<(Place, Duration)> {
    let (begins, ends) = (begin_of(cause, pause)?, begin_of(entry, undo)?);
    if cause.place == entry.place {
        let between = ends.from.checked_sub(begins.from)?;
        return Some((undo.place, between));
    }
    if cause.repeats() > 1 || entry.repeats() > 1 {
        return None;
    }
    let place = entry.after.as_ref().map_or(entry.place, |at| at.place);
    let when = entry.when.as_ref().map(|at| &at.value);
    if when == cause.when.as_ref().map(|at| &at.value) {
        return Some((place, ends.from.saturating_sub(begins.to)));
    }
    let (when, fault) = (when?, pause.fault()?);
    let at_its_event = Some(when.event.as_str()) == kind.node_event();
    (at_its_event && fault.may_befall(&when.source)).then_some((place, ends.from))
}

/// How long after the event of an entry a step of it begins, in the first
/// round; None inside of a `together`, where that hangs on the others, and after
/// a wait for an event.
fn begin_of(entry: &DraftEntry, step: &DraftStep) -> Option<Span> {
    let at = entry.steps.iter().position(|own| own.place == step.place)?;
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
