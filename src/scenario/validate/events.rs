//! Which events the timeline itself brings about.

use super::Check;
use crate::model::FaultKind;
use crate::scenario::draft::{DraftAction, DraftEntry, DraftFault, DraftStep};

/// What an entry with a name tells.
pub const ENTRY_EVENTS: [&str; 2] = [BEGAN, ENDED];
pub const BEGAN: &str = "began";
pub const ENDED: &str = "ended";

/// What faults tell about their nodes, each once.
pub fn node_events() -> Vec<&'static str> {
    let mut all: Vec<&'static str> = Vec::new();
    for event in FaultKind::ALL.into_iter().filter_map(FaultKind::node_event) {
        if !all.contains(&event) {
            all.push(event);
        }
    }
    all
}

impl Check<'_> {
    /// How often an entry tells this about a node, at most.
    pub fn times_told(&self, entry: &DraftEntry, node: &str, event: &str) -> u32 {
        let steps = entry.all_steps().into_iter();
        let once = steps.map(|step| self.told_by(step, node, event));
        let once = once.fold(0, u32::saturating_add);
        once.saturating_mul(entry.repeats())
    }

    fn told_by(&self, step: &DraftStep, node: &str, event: &str) -> u32 {
        let undoes = |kind: FaultKind, target: &str| {
            u32::from(kind.node_event() == Some(event) && target == node)
        };
        match &step.action {
            DraftAction::Fault(fault) => {
                let begins = fault.kind.node_event() == Some(event) && fault.may_befall(node);
                let ends = fault.lasting.is_some() && ends_with(fault, node, event);
                u32::from(begins) + u32::from(ends)
            }
            DraftAction::Resume(target) => undoes(FaultKind::Resume, &target.value),
            DraftAction::Thaw(target) => undoes(FaultKind::Thaw, &target.value),
            DraftAction::Heal(name) => {
                let entries = self.draft.timeline.iter();
                let healed = entries.filter(|entry| entry.is_called(&name.value));
                let steps = healed.flat_map(DraftEntry::all_steps);
                let faults = steps.filter_map(DraftStep::fault);
                let ending = faults.filter(|fault| ends_with(fault, node, event));
                ending.count() as u32
            }
            DraftAction::Wait(_) | DraftAction::Await(_) | DraftAction::Together(_) => 0,
        }
    }

    /// How often the end of an entry is told, at most: after its last step, and
    /// each time that it is healed. Never where something of it stays.
    pub fn times_ended(&self, entry: &DraftEntry) -> u32 {
        let heals = |other: &DraftEntry| {
            let steps = other.all_steps().into_iter();
            let heals = steps.filter(|step| {
                matches!(&step.action, DraftAction::Heal(name) if entry.is_called(&name.value))
            });
            (heals.count() as u32).saturating_mul(other.repeats())
        };
        let healed = self.draft.timeline.iter().map(heals);
        let healed = healed.fold(0, u32::saturating_add);
        u32::from(self.ends_by_itself(entry)).saturating_add(healed)
    }

    fn ends_by_itself(&self, entry: &DraftEntry) -> bool {
        let steps = entry.all_steps();
        let undone = |fault: &DraftFault| {
            steps.iter().any(|step| match &step.action {
                DraftAction::Resume(node) => {
                    fault.kind == FaultKind::Pause && fault.may_befall(&node.value)
                }
                DraftAction::Thaw(node) => {
                    fault.kind == FaultKind::Freeze && fault.may_befall(&node.value)
                }
                _ => false,
            })
        };
        // A worker that was killed is gone: nothing of that is left to undo.
        let is_gone = |fault: &DraftFault| {
            let mut nodes = fault.nodes().iter();
            fault.kind == FaultKind::Kill && nodes.all(|node| self.worker(&node.value).is_some())
        };
        let mut faults = steps.iter().filter_map(|step| step.fault());
        faults.all(|fault| !fault.stays() || is_gone(fault) || undone(fault))
    }
}

fn ends_with(fault: &DraftFault, node: &str, event: &str) -> bool {
    fault.kind.end_event() == Some(event) && fault.may_befall(node)
}
