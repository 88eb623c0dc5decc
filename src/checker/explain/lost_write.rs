use super::super::acknowledged::acknowledged_writes;
use super::chain::{essential, granted};
use super::evidence::Evidence;
use super::scene::Scene;
use super::{Need, Step, assemble, title};
use crate::model::{Story, Violation, ViolationKind};

/// Grant → 200 → whatever happened to the resource → the log without the write.
pub(super) fn tell(evidence: &Evidence, lost: &Violation) -> Option<Story> {
    let log = &evidence.sound.record.log;
    let stands_there = evidence.positions.row(lost.row);
    let all = acknowledged_writes(&evidence.sound.history);
    let told = all.into_iter().rfind(|told| {
        let is_there = stands_there.is_some_and(|row| told.is_at(row, log));
        let is_lost = lost.kind == ViolationKind::AcknowledgedWriteLost;
        let by_worker = lost.workers.first() == Some(&told.event.worker);
        told.position == lost.row && told.key == lost.key && by_worker && is_there != is_lost
    })?;
    let (told_ns, token, owner) = (told.event.at_ns, told.token, told.owner);
    let who = evidence.who(Some(owner));
    let end_ns = evidence.end_ns();
    let hold = evidence.hold_by(&lost.key, owner);

    let mut steps: Vec<Step> = Vec::new();
    steps.extend(hold.and_then(|hold| granted(evidence, hold)));
    let acknowledged = Scene::Acknowledged {
        who,
        token,
        position: lost.row,
    };
    steps.push(essential(told_ns, acknowledged));
    let bites = evidence.bites(who.worker.unwrap_or(""), told_ns, end_ns);
    steps.extend(bites.into_iter().map(|bite| bite.step(Need::Colour)));
    let missing = Scene::Missing {
        who,
        token,
        position: lost.row,
        instead: stands_there.map(|row| (evidence.writer(row), row.token)),
    };
    Some(Story {
        key: lost.key.clone(),
        row: lost.row,
        kinds: vec![lost.kind],
        title: title(&[lost.kind]),
        steps: assemble(steps, essential(end_ns, missing)),
    })
}
