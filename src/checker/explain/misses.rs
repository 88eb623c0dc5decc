//! How it came to an expectation that was missed, where no violation tells it.

use super::super::holds::Holds;
use super::super::measures::blocked;
use super::chain::{self, essential, granted};
use super::evidence::Evidence;
use super::scene::Scene;
use super::{Need, Step, assemble};
use crate::model::{
    CaseVerdict, Count, EventKind, Expectations, Judgement, Measure, Overlap, RowOutcome,
    Step as Phase, StepKind, Story,
};

pub(in crate::checker) fn misses<'a>(
    evidence: &Evidence<'_, 'a>,
    holds: &Holds<'a>,
    judgement: &Judgement,
    verdict: &CaseVerdict,
    missed: &[&str],
) -> Vec<Story> {
    let is_missed = |what: &str| missed.contains(&what);
    let mut stories = Vec::new();
    if is_missed(Measure::Blocked.name()) {
        stories.extend(too_long_blocked(evidence, holds));
    }
    if is_missed(Count::Overlaps.name()) {
        let mut overlaps = judgement.overlaps.iter();
        let first = overlaps.find(|overlap| overlap.definite);
        stories.extend(first.and_then(|overlap| overlapping(evidence, overlap)));
    }
    if is_missed(Expectations::ORDER) {
        let findings = verdict.findings.iter();
        let broken = findings.filter(|finding| finding.what == Expectations::ORDER);
        stories.extend(broken.map(|finding| order_not_kept(evidence, &finding.found.to_string())));
    }
    let about_writes = [
        Count::RightfulRejections,
        Count::StaleRejections,
        Count::AcceptedWriters,
        Count::AcceptedWrites,
    ];
    let has_refusal = judgement.stories.iter().any(|story| story.row > 0);
    if about_writes.iter().any(|count| is_missed(count.name())) && !has_refusal {
        let refused = evidence.sound.log.iter();
        let refused = refused
            .clone()
            .position(|row| row.outcome == RowOutcome::Rejected);
        stories.extend(refused.map(|index| {
            let row = &evidence.sound.log[index];
            let title = match row.token == row.seen {
                true => "the write that was refused for an equal token",
                false => "the write that was refused",
            };
            chain::of_refusal(evidence, index, title)
        }));
    }
    if is_missed(Count::FailedAcquires.name()) || missed.iter().any(|what| is_of_work(what)) {
        stories.extend(failed_acquire(evidence));
    }
    stories
}

fn is_of_work(what: &str) -> bool {
    what == Count::AcceptedWrites.name() || what == Count::AcceptedWriters.name()
}

fn told<'a>(who: &'a str, what: String, at_ns: u64) -> Step<'a> {
    essential(
        at_ns,
        Scene::Told {
            kind: StepKind::Other,
            who,
            what,
            closely: None,
        },
    )
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

/// The hold before, how it ended, who asked, and when that was granted.
fn too_long_blocked<'a>(evidence: &Evidence<'_, 'a>, holds: &Holds<'a>) -> Option<Story> {
    let longest = blocked(holds)?;
    let (ask, key) = (longest.ask, longest.ask.key);
    let mut steps = Vec::new();
    if let Some(before) = longest.before {
        steps.extend(granted(evidence, before));
        let failed = evidence.sound.history.iter().find(|event| {
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
        let bites = evidence.bites(before.worker, before.from_ns, ask.to_ns);
        steps.extend(bites.into_iter().rev().map(|bite| bite.step(Need::Helpful)));
        if let Some((at_ns, _)) = evidence.servers.let_go(before) {
            let what = format!("'s lock on {key} is gone from its server");
            let who = before.worker;
            steps.push(essential(at_ns, Scene::Served { who, what }));
        }
    }
    steps.push(told(ask.worker, format!("asks for {key}"), ask.from_ns));
    steps.retain(|step| step.at_ns <= ask.to_ns);
    let waited = longest.ns() as f64 / 1e9;
    let last = Scene::Told {
        kind: StepKind::Other,
        who: ask.worker,
        what: match ask.end {
            super::super::holds::AskEnd::Granted => format!("is granted {key}"),
            _ => format!("has not been granted {key}"),
        },
        closely: Some(format!(
            " after {waited:.2} s of waiting for a key that nobody held"
        )),
    };
    Some(story(
        key,
        "the longest wait for a key that nobody held",
        steps,
        essential(ask.to_ns, last),
    ))
}

fn overlapping<'a>(evidence: &Evidence<'_, 'a>, overlap: &Overlap) -> Option<Story> {
    let of = |worker: &str| {
        let mut holds = evidence.holds.iter().rev();
        holds.find(|hold| {
            hold.worker == worker && hold.key == overlap.key && hold.from_ns <= overlap.from_ns
        })
    };
    let (first, second) = (of(&overlap.first)?, of(&overlap.second)?);
    let mut steps: Vec<Step> = [first, second]
        .into_iter()
        .filter_map(|hold| granted(evidence, hold))
        .collect();
    let bites = evidence.bites(first.worker, first.from_ns, overlap.from_ns);
    steps.extend(bites.into_iter().rev().map(|bite| bite.step(Need::Helpful)));
    let what = format!("still believes that it holds {}", first.key);
    let last = told(first.worker, what, overlap.from_ns.max(second.from_ns));
    Some(story(
        &overlap.key,
        "two workers that held one key at the same time",
        steps,
        last,
    ))
}

fn order_not_kept(evidence: &Evidence, found: &str) -> Story {
    let grants = evidence
        .holds
        .iter()
        .filter_map(|hold| granted(evidence, hold));
    let steps: Vec<Step> = grants.collect();
    let key = evidence.holds.first().map_or("", |hold| hold.key);
    let last = Scene::Told {
        kind: StepKind::Other,
        who: "the order of events",
        what: "was not the expected one".to_owned(),
        closely: Some(format!(": {found}")),
    };
    let last = essential(evidence.end_ns(), last);
    story(key, "the order that was not kept", steps, last)
}

fn failed_acquire(evidence: &Evidence) -> Option<Story> {
    let failed = evidence
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
    let asked = evidence.sound.history.iter().rfind(|other| {
        other.worker == event.worker
            && other.at_ns <= event.at_ns
            && matches!(other.kind, EventKind::Acquiring { .. })
    })?;
    let EventKind::Acquiring { key, .. } = &asked.kind else {
        return None;
    };
    let mut steps = vec![told(&event.worker, format!("asks for {key}"), asked.at_ns)];
    let bites = evidence.bites(&event.worker, asked.at_ns, event.at_ns);
    steps.extend(bites.into_iter().rev().map(|bite| bite.step(Need::Helpful)));
    let last = Scene::Told {
        kind: StepKind::Other,
        who: &event.worker,
        what: format!("cannot acquire {key}"),
        closely: Some(format!(": {error}")),
    };
    Some(story(
        key,
        "the acquire that failed",
        steps,
        essential(event.at_ns, last),
    ))
}
