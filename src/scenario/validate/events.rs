//! The events that the timeline itself brings about.

use super::*;

/// The events of an entry that has a name.
pub const ENTRY_EVENTS: [&str; 2] = [BEGAN, ENDED];
pub const BEGAN: &str = "began";
pub const ENDED: &str = "ended";

/// Returns the events that faults report about their nodes, each once.
pub fn node_events() -> Vec<&'static str> {
    once_each(FaultKind::ALL.into_iter().filter_map(FaultKind::node_event))
}

impl Check<'_> {
    /// Returns how often an entry reports this about a node, at most.
    pub fn times_told(&self, entry: &DraftEntry, node: &str, event: &str) -> u32 {
        let steps = entry.all_steps().into_iter();
        let once = steps.map(|step| self.told_by(step, node, event));
        let once = once.fold(0, u32::saturating_add);
        once.saturating_mul(entry.repeats())
    }

    fn told_by(&self, step: &DraftStep, node: &str, event: &str) -> u32 {
        match step {
            Step::Inject { fault, .. } => {
                let begins = fault.kind.node_event() == Some(event) && fault.may_affect(node);
                let ends = fault.has_end && ends_with(fault, node, event);
                u32::from(begins) + u32::from(ends)
            }
            Step::End(end) => {
                u32::from(end.by.node_event() == Some(event) && end.node.value == node)
            }
            Step::Heal { entry } => {
                let entries = self.draft.timeline.iter();
                let healed = entries.filter(|other| other.is_called(&entry.value));
                let steps = healed.flat_map(DraftEntry::all_steps);
                let faults = steps.filter_map(DraftStep::fault);
                let ending = faults.filter(|fault| ends_with(fault, node, event));
                ending.count() as u32
            }
            Step::Wait { .. } | Step::Await { .. } | Step::Together { .. } => 0,
        }
    }

    /// Returns how often the end of an entry is reported, at most: after its last step, and each
    /// time that it is healed. An entry with a fault that stays reports no end after its last step.
    pub fn times_ended(&self, entry: &DraftEntry) -> u32 {
        let heals = |other: &DraftEntry| {
            let steps = other.all_steps().into_iter();
            let heals = steps.filter(
                |step| matches!(step, Step::Heal { entry: name } if entry.is_called(&name.value)),
            );
            (heals.count() as u32).saturating_mul(other.repeats())
        };
        let healed = self.draft.timeline.iter().map(heals);
        let healed = healed.fold(0, u32::saturating_add);
        u32::from(self.ends_by_itself(entry)).saturating_add(healed)
    }

    fn ends_by_itself(&self, entry: &DraftEntry) -> bool {
        let steps = entry.all_steps();
        let undone = |fault: &DraftFault| {
            let nodes = || fault.nodes().iter();
            steps.iter().any(|step| {
                matches!(step, Step::End(end) if nodes().any(|node| end.ends(fault.kind, &node.value)))
            })
        };
        // A killed worker is gone, so there is nothing left to undo.
        let is_gone = |fault: &DraftFault| {
            let mut nodes = fault.nodes().iter();
            fault.kind.class() == FaultClass::Kill
                && nodes.all(|node| self.worker(&node.value).is_some())
        };
        let mut faults = steps.iter().filter_map(|step| step.fault());
        faults.all(|fault| !fault.stays() || is_gone(fault) || undone(fault))
    }
}

fn ends_with(fault: &DraftFault, node: &str, event: &str) -> bool {
    fault.kind.end_event() == Some(event) && fault.may_affect(node)
}
