use super::chain::{decision, essential, granted};
use super::evidence::Evidence;
use super::scene::Scene;
use super::{Step, assemble, title};
use crate::model::{StepKind, Story, Violation};

/// The writes that a promise of the resource was broken with, and how.
pub(super) fn tell(evidence: &Evidence, violation: &Violation) -> Option<Story> {
    let row = evidence.positions.row(violation.row);
    let against = violation
        .against
        .and_then(|seq| evidence.positions.row(seq));
    let mut steps: Vec<Step> = Vec::new();
    for row in against.into_iter().chain(row) {
        let hold = evidence.hold_of(row);
        steps.extend(hold.and_then(|hold| granted(evidence, hold)));
        steps.push(essential(row.at_ns, decision(evidence, row)));
    }
    let last_ns = steps.iter().map(|step| step.at_ns).max();
    let last = Scene::Told {
        kind: StepKind::Other,
        who: "the resource",
        what: format!("breaks its word ({})", violation.kind),
        closely: Some(format!(": {}", violation.detail)),
    };
    let at_ns = last_ns.unwrap_or(violation.at_ns).max(violation.at_ns);
    Some(Story {
        key: violation.key.clone(),
        row: violation.row,
        kinds: vec![violation.kind],
        title: title(&[violation.kind]),
        steps: assemble(steps, essential(at_ns, last)),
    })
}
