//! Stories of promises that the lock broke.

use super::*;

pub(super) fn tell<'a>(case: &Case<'_, 'a>, broken: &Break<'a>) -> Story {
    let mut steps: Vec<Step> = Vec::new();
    for &index in &broken.holds {
        let hold = &case.holds.all[index];
        steps.extend(life(case, hold, broken.at_ns));
        // The excuse of a break says enough about how the lock was lost, and the time at
        // which a bystander learns of that differs from run to run.
        if broken.excuse.is_none() {
            steps.extend(let_go(case, hold, broken.at_ns));
        }
    }
    let first = broken.holds.first().map(|&index| &case.holds.all[index]);
    if let Some(first) = first {
        let bites = case.bites(first.worker, first.asked_ns, broken.at_ns);
        let bites = bites.into_iter().rev();
        steps.extend(bites.map(|bite| bite.step(Need::Helpful)));
    }
    if broken.kind == ViolationKind::NeverGranted {
        steps.extend(asked(case, broken));
    }
    let who = broken.workers.first().copied().unwrap_or("somebody");
    let other = broken.workers.get(1).copied().unwrap_or("somebody else");
    let key = broken.key;
    let what = broken.kind.deed(key, other);
    let excuse = broken.excuse.as_ref();
    let excused = excuse.map_or(String::new(), |excuse| {
        format!("; what excuses it is {}", excuse.text)
    });
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
        steps: assemble(steps, told(who, format!("{what}{excused}"), at_ns)),
    }
}

fn life<'a>(case: &Case<'_, 'a>, hold: &Hold<'a>, to_ns: u64) -> Vec<Step> {
    let helpful = |at_ns: u64, what: String| Step {
        need: Need::Helpful,
        ..told(hold.worker, what, at_ns)
    };
    let mut steps: Vec<Step> = granted(case, hold).into_iter().collect();
    steps.push(helpful(hold.asked_ns, format!("asks for {}", hold.key)));
    for (at_ns, what) in [
        (hold.lost_ns, "learns that its lease is gone"),
        (hold.releasing_ns, "begins to release it"),
    ] {
        steps.extend(at_ns.map(|at_ns| helpful(at_ns, what.to_owned())));
    }
    steps.retain(|step| step.at_ns <= to_ns);
    steps
}

/// Returns how the server let a hold go, if that was seen by then.
fn let_go<'a>(case: &Case<'_, 'a>, hold: &Hold<'a>, to_ns: u64) -> Option<Step> {
    let (at_ns, end) = case.servers.let_go(hold)?;
    let key = hold.key;
    let what = match end {
        StayEnd::Released | StayEnd::SomebodyReleased => {
            format!("'s lock on {key} is released at its server")
        }
        StayEnd::Expired => format!("'s lock on {key} expires at its server"),
        StayEnd::Replaced => format!("'s lock on {key} is another's at its server"),
        StayEnd::Forgotten => format!("'s lock on {key} is lost with its server's data"),
    };
    let step = Step {
        need: Need::Helpful,
        at_ns,
        scene: Scene::new(StepKind::LetGo).say(format!("{}{what}", hold.worker)),
    };
    (at_ns <= to_ns).then_some(step)
}

/// Returns when the worker that was never granted the key began to ask.
fn asked<'a>(case: &Case<'_, 'a>, broken: &Break<'a>) -> Option<Step> {
    let who = *broken.workers.first()?;
    let asked = case.sound.history.iter().rfind(|event| {
        event.worker == who
            && event.at_ns <= broken.at_ns
            && matches!(&event.kind, EventKind::Acquiring { key, .. } if key == broken.key)
    })?;
    Some(told(who, format!("asks for {}", broken.key), asked.at_ns))
}
