//! Finds workers and entries that wait for each other, and so would wait for ever.

use super::events::node_events;
use super::*;
use std::collections::BTreeSet;

/// Complains about steps that wait for an event which cannot come before they are over.
fn own_waits(check: &Check<'_>, report: &mut Report) {
    for entry in &check.draft.timeline {
        let at_gate = entry.when.as_ref().filter(|at| at.value.event == "at_gate");
        let held = at_gate.map(|at| at.value.source.as_str());
        for at in entry.awaited() {
            let Trigger { source, event, .. } = &at.value;
            let why = if entry.is_called(source) {
                "it waits for this step".to_owned()
            } else if held == Some(source) && EventKind::NAMES.contains(&event.as_str()) {
                format!("worker `{source}` stands at its gate until this has come")
            } else {
                continue;
            };
            report.add(at.place, format!("`{}` never comes: {why}", at.value));
        }
    }
}

/// Complains about everything that never starts. `wrong` are the places of triggers that have been
/// complained about; what they trigger is not complained about again.
pub fn check(check: &Check<'_>, wrong: &[Place], report: &mut Report) {
    own_waits(check, report);
    let mut reached = Reached {
        check,
        wrong,
        workers: BTreeSet::new(),
        entries: BTreeSet::new(),
    };
    let (workers, entries) = (&check.draft.workers, &check.draft.timeline);
    // Each pass reaches at least one more, or is the last.
    for _ in 0..=workers.len() + entries.len() {
        if !reached.pass() {
            break;
        }
    }
    let mut stuck = false;
    for worker in workers {
        if let Some(start) = &worker.start
            && !reached.workers.contains(worker.name.value.as_str())
        {
            stuck = true;
            let message = format!(
                "worker `{}` never starts: `{}` waits for a start that waits for it",
                worker.name.value, start.value
            );
            report.add(start.place, message);
        }
    }
    // Entries that are triggered by workers which never start are not at fault.
    for (index, entry) in entries.iter().enumerate().filter(|_| !stuck) {
        if let Some(when) = &entry.when
            && !reached.entries.contains(&index)
        {
            let message = format!("`{}` never comes: it waits for this entry", when.value);
            report.add(when.place, message);
        }
    }
}

struct Reached<'a> {
    check: &'a Check<'a>,
    wrong: &'a [Place],
    workers: BTreeSet<&'a str>,
    entries: BTreeSet<usize>,
}

impl<'a> Reached<'a> {
    /// Returns whether anything new can start.
    fn pass(&mut self) -> bool {
        let before = self.workers.len() + self.entries.len();
        for worker in &self.check.draft.workers {
            if self.comes(worker.start.as_ref()) {
                self.workers.insert(&worker.name.value);
            }
        }
        for (index, entry) in self.check.draft.timeline.iter().enumerate() {
            if self.comes(entry.when.as_ref()) {
                self.entries.insert(index);
            }
        }
        self.workers.len() + self.entries.len() > before
    }

    fn comes(&self, at: Option<&At<Trigger>>) -> bool {
        let Some(At { place, value }) = at else {
            return true;
        };
        let Trigger { source, event, .. } = value;
        if self.wrong.contains(place) || source == SCENARIO || event == "ready" {
            return true;
        }
        let mut entries = self.check.draft.timeline.iter();
        if let Some(index) = entries.position(|entry| entry.is_called(source)) {
            return self.entries.contains(&index);
        }
        if node_events().contains(&event.as_str()) {
            return self.is_told(source, event);
        }
        match source == RESOURCE {
            // Somebody has to write before the resource can report anything.
            true => !self.workers.is_empty(),
            false => self.workers.contains(source.as_str()),
        }
    }

    /// Returns whether an entry that is reached reports this about a node.
    fn is_told(&self, node: &str, event: &str) -> bool {
        if !self.check.draft.timeline_is_whole() {
            return true;
        }
        let tells = |(index, entry): (usize, &DraftEntry)| {
            self.entries.contains(&index) && self.check.times_told(entry, node, event) > 0
        };
        let mut entries = self.check.draft.timeline.iter().enumerate();
        entries.any(tells)
    }
}
