//! Stories of missed expectations that no violation explains.

use super::*;
use crate::model::Step as Phase;

pub(in crate::checker) fn misses(
    case: &Case,
    judgement: &Judgement,
    verdict: &CaseVerdict,
    missed: &[&str],
) -> Vec<Story> {
    let is_missed = |what: &str| missed.contains(&what);
    let mut stories = Vec::new();
    if is_missed(Measure::Blocked.name()) {
        stories.extend(too_long_blocked(case));
    }
    if is_missed(Count::Overlaps.name()) {
        let mut overlaps = judgement.overlaps.iter();
        let first = overlaps.find(|overlap| overlap.definite);
        stories.extend(first.and_then(|overlap| overlapping(case, overlap)));
    }
    if is_missed(Expectations::ORDER) {
        let findings = verdict.findings.iter();
        let broken = findings.filter(|finding| finding.what == Expectations::ORDER);
        stories.extend(broken.map(|finding| order_not_kept(case, &finding.found.to_string())));
    }
    let about_writes = [
        Count::RightfulRejections,
        Count::StaleRejections,
        Count::AcceptedWriters,
        Count::AcceptedWrites,
    ];
    let has_refusal = judgement.stories.iter().any(|story| story.row > 0);
    if about_writes.iter().any(|count| is_missed(count.name())) && !has_refusal {
        let refused = case.sound.log.iter();
        let refused = refused
            .clone()
            .position(|row| row.outcome == RowOutcome::Rejected);
        stories.extend(refused.map(|index| {
            let row = &case.sound.log[index];
            let title = match row.token == row.seen {
                true => "the write that was refused for an equal token",
                false => "the write that was refused",
            };
            chain::of_refusal(case, index, title)
        }));
    }
    if is_missed(Count::FailedAcquires.name()) || missed.iter().any(|what| is_of_work(what)) {
        stories.extend(failed_acquire(case));
    }
    stories
}

fn is_of_work(what: &str) -> bool {
    what == Count::AcceptedWrites.name() || what == Count::AcceptedWriters.name()
}

fn story(key: &str, title: &str, steps: Vec<Step>, last: Step) -> Story {
    Story {
        key: key.to_owned(),
        row: 0,
        kinds: Vec::new(),
        title: title.to_owned(),
        steps: assemble(steps, last),
    }
}

/// Tells of the hold before, how it ended, who asked, and when that was granted.
fn too_long_blocked(case: &Case) -> Option<Story> {
    let longest = measures::blocked(case.holds)?;
    let (ask, key) = (longest.ask, longest.ask.key);
    let mut steps = Vec::new();
    if let Some(before) = longest.before {
        steps.extend(granted(case, before));
        let failed = case.sound.history.iter().find(|event| {
            event.worker == before.worker
                && event.at_ns >= before.from_ns
                && matches!(
                    &event.kind,
                    EventKind::Failed {
                        during: Phase::Release,
                        ..
                    }
                )
        });
        steps.extend(
            failed.map(|event| told(before.worker, format!("cannot release {key}"), event.at_ns)),
        );
        if let Some(over_ns) = before.over_ns {
            steps.push(told(before.worker, format!("is done with {key}"), over_ns));
        }
        let bites = case.bites(before.worker, before.from_ns, ask.to_ns);
        steps.extend(bites.into_iter().rev().map(|bite| bite.step(Need::Helpful)));
        if let Some((at_ns, _)) = case.servers.let_go(before) {
            let words = format!("{}'s lock on {key} is gone from its server", before.worker);
            steps.push(essential(at_ns, Scene::new(StepKind::LetGo).say(words)));
        }
    }
    steps.push(told(ask.worker, format!("asks for {key}"), ask.from_ns));
    steps.retain(|step| step.at_ns <= ask.to_ns);
    let waited = longest.ns() as f64 / 1e9;
    let what = match ask.end {
        AskEnd::Granted => format!("is granted {key}"),
        _ => format!("has not been granted {key}"),
    };
    let closely = format!(" after {waited:.2} s of waiting for a key that nobody held");
    let last = told_closely(ask.worker, what, closely, ask.to_ns);
    let title = "the longest wait for a key that nobody held";
    Some(story(key, title, steps, last))
}

fn overlapping(case: &Case, overlap: &Overlap) -> Option<Story> {
    let of = |worker: &str| {
        let mut holds = case.holds.all.iter().rev();
        holds.find(|hold| {
            hold.worker == worker && hold.key == overlap.key && hold.from_ns <= overlap.from_ns
        })
    };
    let (first, second) = (of(&overlap.first)?, of(&overlap.second)?);
    let mut steps: Vec<Step> = [first, second]
        .into_iter()
        .filter_map(|hold| granted(case, hold))
        .collect();
    let bites = case.bites(first.worker, first.from_ns, overlap.from_ns);
    steps.extend(bites.into_iter().rev().map(|bite| bite.step(Need::Helpful)));
    let what = format!("still believes that it holds {}", first.key);
    let last = told(first.worker, what, overlap.from_ns.max(second.from_ns));
    let title = "two workers that held one key at the same time";
    Some(story(&overlap.key, title, steps, last))
}

fn order_not_kept(case: &Case, found: &str) -> Story {
    let grants = case.holds.all.iter().filter_map(|hold| granted(case, hold));
    let steps: Vec<Step> = grants.collect();
    let key = case.holds.all.first().map_or("", |hold| hold.key);
    let what = "was not the expected one".to_owned();
    let (closely, end_ns) = (format!(": {found}"), case.end_ns());
    let last = told_closely("the order of events", what, closely, end_ns);
    story(key, "the order that was not kept", steps, last)
}

fn failed_acquire(case: &Case) -> Option<Story> {
    let failed = case
        .sound
        .history
        .iter()
        .find_map(|event| match &event.kind {
            EventKind::Failed {
                during: Phase::Acquire,
                error,
                ..
            } => Some((event, error)),
            _ => None,
        });
    let (event, error) = failed?;
    let asked = case.sound.history.iter().rfind(|other| {
        other.worker == event.worker
            && other.at_ns <= event.at_ns
            && matches!(other.kind, EventKind::Acquiring { .. })
    })?;
    let EventKind::Acquiring { key, .. } = &asked.kind else {
        return None;
    };
    let mut steps = vec![told(&event.worker, format!("asks for {key}"), asked.at_ns)];
    let bites = case.bites(&event.worker, asked.at_ns, event.at_ns);
    steps.extend(bites.into_iter().rev().map(|bite| bite.step(Need::Helpful)));
    let (what, closely) = (format!("cannot acquire {key}"), format!(": {error}"));
    let last = told_closely(&event.worker, what, closely, event.at_ns);
    Some(story(key, "the acquire that failed", steps, last))
}
