//! Stories of promises that the resource broke.

use super::*;

/// Tells with which writes the resource broke a promise, and how.
pub(super) fn broken_word(case: &Case, violation: &Violation) -> Story {
    let row = case.positions.row(violation.row);
    let against = violation.against.and_then(|seq| case.positions.row(seq));
    let mut steps: Vec<Step> = Vec::new();
    for row in against.into_iter().chain(row) {
        let hold = case.hold_of(row);
        steps.extend(hold.and_then(|hold| granted(case, hold)));
        steps.push(essential(row.at_ns, decision(case, row)));
    }
    let last_ns = steps.iter().map(|step| step.at_ns).max();
    let at_ns = last_ns.unwrap_or(violation.at_ns).max(violation.at_ns);
    let what = format!("breaks its word ({})", violation.kind);
    let closely = format!(": {}", violation.detail);
    let last = told_closely("the resource", what, closely, at_ns);
    story_of(violation, steps, last)
}

/// Tells of the grant → the acceptance → the later refusals → another value.
pub(super) fn other_value(case: &Case, violation: &Violation) -> Option<Story> {
    let accepted = case.positions.row(violation.row)?;
    let hold = case.hold_of(accepted);
    let grant = hold.and_then(|hold| granted(case, hold));
    let mut steps: Vec<Step> = grant.into_iter().collect();
    let later = case.sound.log.iter();
    let later = later.filter(|row| row.key == accepted.key && row.seq >= accepted.seq);
    steps.extend(later.map(|row| essential(row.at_ns, decision(case, row))));
    let end_ns = steps.iter().map(|step| step.at_ns).max()?;
    let what = "holds something else than what was accepted last".to_owned();
    let last = told(case.key_of(accepted), what, end_ns);
    Some(story_of(violation, steps, last))
}

/// Tells of the grant → 200 → the faults of the resource → the log without the write.
pub(super) fn lost_write(case: &Case, lost: &Violation) -> Option<Story> {
    let log = &case.sound.record.log;
    let stands_there = case.positions.row(lost.row);
    let all = acknowledged::acknowledged_writes(&case.sound.history);
    let told = all.into_iter().rfind(|told| {
        let is_there = stands_there.is_some_and(|row| told.is_at(row, log));
        let is_lost = lost.kind == ViolationKind::AcknowledgedWriteLost;
        let by_worker = lost.workers.first() == Some(&told.event.worker);
        told.position == lost.row && told.key == lost.key && by_worker && is_there != is_lost
    })?;
    let (told_ns, token, owner) = (told.event.at_ns, told.token, told.owner);
    let who = case.who(Some(owner));
    let end_ns = case.end_ns();
    let hold = case.hold_by(&lost.key, owner);

    let mut steps: Vec<Step> = Vec::new();
    steps.extend(hold.and_then(|hold| granted(case, hold)));
    let acknowledged = Scene::new(StepKind::Other)
        .who(who)
        .say(" is told that its write with ")
        .token(token)
        .say(" is accepted")
        .position(lost.row);
    steps.push(essential(told_ns, acknowledged));
    let bites = case.bites(who.worker.unwrap_or(""), told_ns, end_ns);
    steps.extend(bites.into_iter().map(|bite| bite.step(Need::Colour)));
    let missing = Scene::new(StepKind::Other);
    let missing = match stands_there {
        None => missing
            .say("the log does not have ")
            .write(who, token)
            .position(lost.row),
        Some(row) => missing
            .say("the log has ")
            .write(case.writer(row), row.token)
            .position(lost.row)
            .say(" in the place of ")
            .write(who, token),
    };
    Some(story_of(lost, steps, essential(end_ns, missing)))
}
