use super::*;
use crate::faults::{self, Effect};
use crate::model::{FaultClass, FaultKind};
use crate::scenario::Span;
use crate::scenario::action::{Action, FOR, LONGER_THAN};
use crate::scenario::values::{duration, span, trigger};
use crate::yaml::Place;

pub type DraftStep = Step<DraftFault, DraftEnd, At<Span>>;

#[derive(Clone, Debug)]
pub struct DraftFault {
    pub place: Place,
    pub kind: FaultKind,
    pub target: DraftTarget,
    /// None if it could not be read; the names can still be checked.
    pub effect: Option<Effect>,
    pub longer_than: Option<At<Bound>>,
    pub has_end: bool,
}

/// The time that a stop has to exceed.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    Ttl,
    Fixed(Duration),
}

/// A resume or a thaw.
#[derive(Debug)]
pub struct DraftEnd {
    pub place: Place,
    pub by: FaultKind,
    pub node: At<String>,
}

impl DraftFault {
    /// Returns the nodes of which it affects one; none for faults of links.
    pub fn nodes(&self) -> &[At<String>] {
        match &self.target {
            DraftTarget::Node(choices) => choices,
            DraftTarget::Groups(_) | DraftTarget::Links(_) => &[],
        }
    }

    pub fn may_affect(&self, node: &str) -> bool {
        self.nodes().iter().any(|choice| choice.value == node)
    }

    /// Returns whether it lasts until another step undoes it.
    pub fn stays(&self) -> bool {
        self.kind.lasts() && !self.has_end
    }
}

impl DraftEnd {
    pub fn ends(&self, kind: FaultKind, node: &str) -> bool {
        kind.continued_by() == Some(self.by) && self.node.value == node
    }
}

pub fn read(node: &Node, report: &mut Report) -> Option<DraftStep> {
    let keys = node.map("a step", report)?.iter().map(|(key, _)| key);
    let action = the_action(node.place, keys.clone().collect(), report)?;
    for key in keys {
        belongs(key, action, report);
    }
    // Unknown keys have just been complained about.
    let what = format!("`{}`", action.name());
    let mut fields = Fields::of(node, &what, report)?;
    let target = fields.optional(action.name())?;
    Some(match action {
        Action::Fault(by) if by.continues().is_some() => Step::End(DraftEnd {
            place: node.place,
            by,
            node: target.text("a node", report)?,
        }),
        Action::Fault(kind) => {
            let lasting = read_lasting(&mut fields, kind, report);
            let is_stop = kind.class() == FaultClass::Stop;
            let bound = is_stop.then(|| fields.read(LONGER_THAN, report, read_bound));
            let fault = DraftFault {
                place: node.place,
                kind,
                effect: (faults::form(kind).read)(&mut fields, report),
                longer_than: bound.flatten(),
                target: target::read(kind.facts().affects, target, report)?,
                has_end: lasting.is_some(),
            };
            Step::Inject { fault, lasting }
        }
        Action::Wait if names_an_event(target) => Step::Await {
            event: trigger(target, report)?,
        },
        Action::Wait => Step::Wait {
            length: span(target, report)?,
        },
        Action::Heal => Step::Heal {
            entry: target.text("the name of an entry", report)?,
        },
        Action::Together => Step::Together {
            steps: read_together(target, report)?,
        },
    })
}

/// Returns whether the text is `a.acquired`, and not `2s`, `1.5s` or `1s..2s`.
fn names_an_event(node: &Node) -> bool {
    let is_name = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    matches!(&node.value, Value::Scalar(text) if is_name(text) && text.contains('.'))
}

/// Returns the one key of a step that says what it does. A key may be an action and a modifier:
/// toxics have a `latency` of their own.
fn the_action(place: Place, keys: Vec<&At<String>>, report: &mut Report) -> Option<Action> {
    let named = |key: &&At<String>| Action::named(&key.value);
    let all: Vec<Action> = keys.iter().filter_map(named).collect();
    let is_modifier = |action: &Action| {
        let mut others = all.iter().filter(|other| *other != action);
        others.any(|other| other.modifiers().contains(&action.name()))
    };
    let actions: Vec<Action> = all.iter().copied().filter(|a| !is_modifier(a)).collect();
    match actions.as_slice() {
        [action] => Some(*action),
        [] => {
            no_action(place, &keys, report);
            None
        }
        [first, second, ..] => {
            let message = format!(
                "one step is one action: `{}` and `{}` are two; write a list of steps, or `together`",
                first.name(),
                second.name()
            );
            report.add(place, message);
            None
        }
    }
}

fn no_action(place: Place, keys: &[&At<String>], report: &mut Report) {
    let is_strange = |key: &&&At<String>| Action::with_modifier(&key.value).is_empty();
    match keys.iter().find(is_strange) {
        Some(key) => {
            let known = Action::all().map(Action::name);
            report.unknown(key.place, "action", &key.value, known);
        }
        None => {
            let known: Vec<&str> = Action::all().map(Action::name).collect();
            let message = format!("a step needs an action; known: {}", known.join(", "));
            report.add(place, message);
        }
    }
}

/// Complains about a key that does not go with the action.
fn belongs(key: &At<String>, action: Action, report: &mut Report) {
    if action.keys().any(|known| known == key.value) {
        return;
    }
    let owners = Action::with_modifier(&key.value);
    if owners.is_empty() {
        let what = format!("key in `{}`", action.name());
        report.unknown(key.place, &what, &key.value, action.keys());
    } else {
        let message = format!(
            "`{}` has no `{}`; that belongs to {}",
            action.name(),
            key.value,
            owners.join(", ")
        );
        report.add(key.place, message);
    }
}

fn read_lasting(fields: &mut Fields, kind: FaultKind, report: &mut Report) -> Option<At<Span>> {
    // A `for` that does not belong here has been reported.
    if !kind.lasts() {
        return None;
    }
    let lasting = fields.read(FOR, report, span)?;
    if lasting.value.from.is_zero() {
        let message = "a fault that lasts 0ms cannot be seen; give it a length";
        report.add(lasting.place, message);
    }
    Some(lasting)
}

fn read_bound(node: &Node, report: &mut Report) -> Option<At<Bound>> {
    if matches!(&node.value, Value::Scalar(text) if text == "ttl") {
        return Some(At::new(node.place, Bound::Ttl));
    }
    Some(duration(node, report)?.map(Bound::Fixed))
}

fn read_together(node: &Node, report: &mut Report) -> Option<Vec<DraftStep>> {
    let steps = node.list("steps", report)?;
    if steps.len() < 2 {
        report.add(node.place, "`together` takes at least two steps");
    }
    let steps = steps.iter().filter_map(|node| read(node, report));
    Some(steps.collect())
}
