use super::chain::{decision, essential, granted};
use super::evidence::Evidence;
use super::scene::Scene;
use super::{Step, assemble, title};
use crate::model::{Story, Violation};

/// Grant → acceptance → whatever was refused after it → another value.
pub(super) fn tell(evidence: &Evidence, violation: &Violation) -> Option<Story> {
    let accepted = evidence.positions.row(violation.row)?;
    let mut steps: Vec<Step> = Vec::new();
    steps.extend(
        evidence
            .hold_of(accepted)
            .and_then(|hold| granted(evidence, hold)),
    );
    let later = evidence.sound.log.iter();
    let later = later.filter(|row| row.key == accepted.key && row.seq >= accepted.seq);
    steps.extend(later.map(|row| essential(row.at_ns, decision(evidence, row))));
    let end_ns = steps.iter().map(|step| step.at_ns).max()?;
    let key = evidence.key_of(accepted);
    Some(Story {
        key: violation.key.clone(),
        row: violation.row,
        kinds: vec![violation.kind],
        title: title(&[violation.kind]),
        steps: assemble(steps, essential(end_ns, Scene::HoldsOther { key })),
    })
}
