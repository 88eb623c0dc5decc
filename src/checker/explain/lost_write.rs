use super::super::acknowledged::acknowledged_writes;
use super::chain::{essential, granted};
use super::evidence::Evidence;
use super::scene::Scene;
use super::{Need, Step, assemble};
use crate::model::{Story, Violation};

/// Grant → 200 → whatever happened to the resource → the log without the write.
pub(super) fn tell(evidence: &Evidence, lost: &Violation) -> Option<Story> {
    let stands_there = evidence.positions.row(lost.row);
    let told = acknowledged_writes(&evidence.record.history).find(|told| {
        let is_there = stands_there.is_some_and(|row| told.is_at(row));
        told.position == lost.row && told.key == lost.key && !is_there
    })?;
    let (told_ns, token, owner) = (told.event.at_ns, told.token, told.owner);
    let who = evidence.who(Some(owner));
    let end_ns = end_of_record_ns(evidence);
    let hold = evidence
        .holds
        .iter()
        .find(|hold| hold.key == lost.key && hold.grant.is_some_and(|grant| grant.owner == owner));

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
        instead: stands_there.map(|row| (evidence.who(row.owner.as_deref()), row.token)),
    };
    Some(Story {
        key: lost.key.clone(),
        row: lost.row,
        kinds: vec![lost.kind],
        steps: assemble(steps, essential(end_ns, missing)),
    })
}

/// A missing row is found missing when everything is over.
fn end_of_record_ns(evidence: &Evidence) -> u64 {
    let history = evidence.record.history.iter().map(|event| event.at_ns);
    let log = evidence.record.log.iter().map(|row| row.at_ns);
    history.chain(log).max().unwrap_or(0)
}
