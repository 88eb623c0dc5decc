use super::*;
use crate::scenario::values::{number, span, trigger};
use crate::scenario::{Span, Trigger};
use crate::yaml::Place;

pub const MOST_REPEATS: i64 = 1000;

pub struct DraftEntry {
    pub place: Place,
    pub name: Option<At<String>>,
    /// The event that triggers it; without one it counts from the start of the case.
    pub when: Option<At<Trigger>>,
    pub after: Option<At<Span>>,
    pub repeat: Option<At<Repeat>>,
    pub steps: Vec<DraftStep>,
    /// Everything in the entry could be read.
    pub is_whole: bool,
}

/// The number of times that the steps of an entry are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    Times(u32),
    /// Until the scenario's `duration` is over.
    Throughout,
}

const THROUGHOUT: &str = "throughout";

impl DraftEntry {
    pub fn repeat(&self) -> Repeat {
        self.repeat.as_ref().map_or(Repeat::Times(1), |at| at.value)
    }

    /// Returns how often its steps are taken at most.
    pub fn repeats(&self) -> u32 {
        match self.repeat() {
            Repeat::Times(times) => times,
            Repeat::Throughout => u32::MAX,
        }
    }

    pub fn delay(&self) -> Span {
        self.after.as_ref().map_or(Span::default(), |at| at.value)
    }

    /// Returns every step, those inside of a `together` included.
    pub fn all_steps(&self) -> Vec<&DraftStep> {
        self.steps.iter().flat_map(DraftStep::with_inner).collect()
    }

    /// Returns the events that its steps wait for.
    pub fn awaited(&self) -> impl Iterator<Item = &At<Trigger>> {
        let steps = self.all_steps().into_iter();
        steps.filter_map(Step::awaits)
    }

    pub fn is_called(&self, name: &str) -> bool {
        self.name.as_ref().is_some_and(|own| own.value == name)
    }
}

/// The limit of a timeline, because every step is checked against every other one, in every case.
const MOST_STEPS: usize = 200;

pub fn read_all(node: &Node, report: &mut Report) -> Vec<DraftEntry> {
    let nodes = node.list("timeline entries", report).unwrap_or_default();
    let mut steps = nodes.len();
    let mut entries: Vec<DraftEntry> = Vec::new();
    for entry in nodes {
        if steps > MOST_STEPS {
            let message = format!("a timeline has at most {MOST_STEPS} entries and steps");
            report.add(node.place, message);
            break;
        }
        let entry = read(entry, report);
        let own = entry.as_ref().map_or(0, |entry| entry.all_steps().len());
        steps += own.saturating_sub(1);
        entries.extend(entry);
    }
    entries
}

fn read(node: &Node, report: &mut Report) -> Option<DraftEntry> {
    let before = report.complaints();
    let mut fields = Fields::of(node, "a timeline entry", report)?;
    let counts_from = fields.optional("when");
    let name = fields.read("name", report, |node, report| node.text("a name", report));
    let delay = fields.optional("after");
    let repeat = fields.read("repeat", report, read_repeat);
    let steps = fields.required("do", report);
    fields.finish(report);
    if counts_from.is_none() && delay.is_none() {
        let message = "a timeline entry needs `when`, or `after` to count from the start";
        report.add(node.place, message);
    }
    Some(DraftEntry {
        place: node.place,
        name,
        when: counts_from.and_then(|node| trigger(node, report)),
        after: delay.and_then(|node| span(node, report)),
        repeat,
        steps: steps
            .map(|node| read_steps(node, report))
            .unwrap_or_default(),
        is_whole: report.complaints() == before,
    })
}

/// Reads a number, or `throughout`.
fn read_repeat(node: &Node, report: &mut Report) -> Option<At<Repeat>> {
    if matches!(&node.value, Value::Scalar(text) if text == THROUGHOUT) {
        return Some(At::new(node.place, Repeat::Throughout));
    }
    let times = number(node, "repeat", 1..=MOST_REPEATS, report)?;
    Some(times.map(|times| Repeat::Times(times as u32)))
}

/// Reads one step, or a list of them.
fn read_steps(node: &Node, report: &mut Report) -> Vec<DraftStep> {
    let nodes = node.one_or_more();
    if nodes.is_empty() {
        report.add(node.place, "an entry without steps does nothing");
    }
    let steps = nodes.iter().filter_map(|node| step::read(node, report));
    steps.collect()
}
