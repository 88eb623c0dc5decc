use super::*;
use crate::model::Gate;

const MOST_ROUNDS: u32 = 100_000;

pub fn check(check: &Check<'_>, report: &mut Report) {
    for worker in &check.draft.workers {
        worker_alone(check, worker, report);
    }
}

fn worker_alone(check: &Check<'_>, worker: &DraftWorker, report: &mut Report) {
    if let Some(key) = &worker.key {
        let readable = !key.value.chars().any(char::is_control);
        // HTTP clients normalize `.` and `..` away.
        let folded = key.value == "." || key.value == "..";
        if key.value.is_empty() || key.value.len() > 256 || !readable || folded {
            let message =
                "a key is 1 to 256 bytes without control characters, and neither `.` nor `..`";
            report.add(key.place, message);
        }
    }
    if let Some(rounds) = &worker.rounds
        && !(1..=MOST_ROUNDS).contains(&rounds.value)
    {
        report.add(rounds.place, format!("rounds are 1 to {MOST_ROUNDS}"));
    }
    let gates = worker.gate.iter().flatten();
    for gate in gates.filter(|gate| gate.value == Gate::BeforeLeave && worker.nested() < 2) {
        let message = format!(
            "nobody comes to the gate `{}` without `nested: 2` or more",
            gate.value
        );
        report.add(gate.place, message);
    }
    let own = check.facts.map(|facts| facts.resource_kind);
    let chosen = check.draft.resource.as_ref().map(|kind| kind.value);
    if let (Some(writes), Some(kind)) = (&worker.writes, chosen.or(own))
        && !writes.value.suits(kind)
    {
        let message = format!(
            "`{}` is no way to write with `resource: {kind}`",
            writes.value
        );
        report.add(writes.place, message);
    }
    for wait in [&worker.work, &worker.pause].into_iter().flatten() {
        check.fits_the_deadline(wait.place, wait.value, report);
    }
}
