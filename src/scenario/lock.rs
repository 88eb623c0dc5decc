use super::draft::Draft;
use crate::model::{Gate, ReleaseStyle};
use crate::yaml::Report;

/// What the lock's own options exclude.
pub fn check(draft: &Draft, report: &mut Report) {
    let Some(lock) = &draft.lock else { return };
    let Some(options) = lock.options() else {
        return;
    };
    if let Some((field, reason)) = options.conflict()
        && let Some(place) = lock.place_of(field)
    {
        report.add(place, reason);
    }
    if options.release == ReleaseStyle::UnsafeGetThenDel {
        return;
    }
    let gates = draft.workers.iter().flat_map(|worker| &worker.gates);
    for gate in gates.flatten() {
        if gate.value == Gate::BetweenGetAndDel {
            let message = format!(
                "nobody comes to the gate `{}` without `lock: {{ release: {} }}`",
                gate.value,
                ReleaseStyle::UnsafeGetThenDel
            );
            report.add(gate.place, message);
        }
    }
}
