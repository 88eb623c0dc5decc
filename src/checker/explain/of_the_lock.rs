//! How the lock came to break a promise.

use super::super::holds::Hold;
use super::super::lock_rules::Break;
use super::super::servers::StayEnd;
use super::chain::{essential, granted};
use super::evidence::Evidence;
use super::scene::Scene;
use super::{Need, Step, assemble, title};
use crate::model::{EventKind, StepKind, Story, ViolationKind};

pub(super) fn tell<'a>(evidence: &Evidence<'_, 'a>, broken: &Break<'a>) -> Story {
    let mut steps: Vec<Step> = Vec::new();
    for &index in &broken.holds {
        let hold = &evidence.holds[index];
        steps.extend(life(evidence, hold, broken.at_ns));
        // What excuses a break says enough about how the lock was lost, and when a
        // bystander hears of that differs from run to run.
        if broken.excuse.is_none() {
            steps.extend(let_go(evidence, hold, broken.at_ns));
        }
    }
    let first = broken.holds.first().map(|&index| &evidence.holds[index]);
    if let Some(first) = first {
        let bites = evidence.bites(first.worker, first.asked_ns, broken.at_ns);
        let bites = bites.into_iter().rev();
        steps.extend(bites.map(|bite| bite.step(Need::Helpful)));
    }
    if broken.kind == ViolationKind::NeverGranted {
        steps.extend(asked(evidence, broken));
    }
    let who = broken.workers.first().copied().unwrap_or("somebody");
    let other = broken.workers.get(1).copied().unwrap_or("somebody else");
    let key = broken.key;
    let what = match broken.kind {
        ViolationKind::GrantedWhileHeld => format!("holds {key} beside {other}"),
        ViolationKind::ClaimedNotGranted => format!("claims {key} without having been granted it"),
        ViolationKind::TokenNotGrowing => format!("has a lower token than {other} had before"),
        ViolationKind::TokenGrantedTwice => format!("has the token that {other} has had"),
        ViolationKind::AcquiredTooLate => format!("is told of a grant of {key} that is over"),
        ViolationKind::FreedAnother => format!("has freed the lock of {other} on {key}"),
        ViolationKind::ClaimedPastValidity => {
            format!("goes on with {key} after the end of its validity")
        }
        ViolationKind::NeverGranted => format!("is not granted {key}, although nobody holds it"),
        ViolationKind::GrantedOutOfOrder => format!("is granted {key} before {other}"),
        ViolationKind::RenewalRecreated => format!("has {key} again by a renewal"),
        _ => format!("breaks the promise about {key}"),
    };
    let excuse = broken.excuse.as_ref();
    let excused = excuse.map_or(String::new(), |excuse| {
        format!("; what excuses it is {}", excuse.text)
    });
    let last = Scene::Told {
        kind: StepKind::Other,
        who,
        what: format!("{what}{excused}"),
        closely: None,
    };
    let latest_ns = steps.iter().map(|step| step.at_ns).max();
    let at_ns = latest_ns.unwrap_or(0).max(broken.at_ns);
    Story {
        key: key.to_owned(),
        row: 0,
        kinds: vec![broken.kind],
        title: match excuse {
            None => title(&[broken.kind]),
            Some(excuse) => format!("{}, excused by {}", broken.kind, excuse.text),
        },
        steps: assemble(steps, essential(at_ns, last)),
    }
}

/// What is known of a hold up to some moment.
fn life<'a>(evidence: &Evidence<'_, 'a>, hold: &Hold<'a>, to_ns: u64) -> Vec<Step<'a>> {
    let told = |at_ns: u64, kind: StepKind, what: String| Step {
        need: Need::Helpful,
        at_ns,
        scene: Scene::Told {
            kind,
            who: hold.worker,
            what,
            closely: None,
        },
    };
    let key = hold.key;
    let mut steps: Vec<Step> = granted(evidence, hold).into_iter().collect();
    steps.push(told(
        hold.asked_ns,
        StepKind::Other,
        format!("asks for {key}"),
    ));
    let lost = hold
        .lost_ns
        .map(|at_ns| (at_ns, "learns that its lease is gone"));
    let gives_back = hold
        .releasing_ns
        .map(|at_ns| (at_ns, "begins to release it"));
    let ends = lost.into_iter().chain(gives_back);
    steps.extend(ends.map(|(at_ns, what)| told(at_ns, StepKind::Other, what.to_owned())));
    steps.retain(|step| step.at_ns <= to_ns);
    steps
}

/// How its server let a hold go, where that was heard of by then.
fn let_go<'a>(evidence: &Evidence<'_, 'a>, hold: &Hold<'a>, to_ns: u64) -> Option<Step<'a>> {
    let (at_ns, end) = evidence.servers.let_go(hold)?;
    let key = hold.key;
    let what = match end {
        StayEnd::Released => format!("'s lock on {key} is released at its server"),
        StayEnd::Expired => format!("'s lock on {key} expires at its server"),
        StayEnd::Replaced => format!("'s lock on {key} is another's at its server"),
        StayEnd::Forgotten => format!("'s lock on {key} is lost with its server's data"),
    };
    let step = Step {
        need: Need::Helpful,
        at_ns,
        scene: Scene::Served {
            who: hold.worker,
            what,
        },
    };
    (at_ns <= to_ns).then_some(step)
}

/// When the one who was never granted the key began to ask.
fn asked<'a>(evidence: &Evidence<'_, 'a>, broken: &Break<'a>) -> Option<Step<'a>> {
    let who = *broken.workers.first()?;
    let asked = evidence.sound.history.iter().rfind(|event| {
        event.worker == who
            && event.at_ns <= broken.at_ns
            && matches!(&event.kind, EventKind::Acquiring { key, .. } if key == broken.key)
    })?;
    let scene = Scene::Told {
        kind: StepKind::Other,
        who,
        what: format!("asks for {}", broken.key),
        closely: None,
    };
    Some(essential(asked.at_ns, scene))
}
