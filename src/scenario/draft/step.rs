use super::cut::{self, read_groups, read_links};
use super::node_fault::{self, NodeFault, read_choices};
use super::toxic;
use crate::model::{FaultKind, LinkEffect, LinkPattern};
use crate::scenario::action::Action;
use crate::scenario::values::{span, trigger};
use crate::scenario::{Span, Trigger};
use crate::yaml::{At, Fields, Node, Place, Report, Value};

pub struct DraftStep {
    pub place: Place,
    pub action: DraftAction,
}

pub enum DraftAction {
    Fault(DraftFault),
    Resume(At<String>),
    Thaw(At<String>),
    Heal(At<String>),
    Wait(At<Span>),
    /// Until an event has come.
    Await(At<Trigger>),
    Together(Vec<DraftStep>),
}

pub struct DraftFault {
    pub kind: FaultKind,
    pub befalls: Befalls,
    pub lasting: Option<At<Span>>,
}

/// What a fault befalls, and how. Where only the how could not be read, the
/// names can still be checked.
pub enum Befalls {
    /// One of these nodes.
    Node {
        choices: Vec<At<String>>,
        how: Option<NodeFault>,
    },
    Groups {
        groups: Vec<Vec<At<String>>>,
        effect: Option<LinkEffect>,
    },
    Links {
        patterns: Vec<At<LinkPattern>>,
        effect: Option<LinkEffect>,
    },
}

impl DraftStep {
    /// This step and those inside of it.
    pub fn with_inner(&self) -> Vec<&DraftStep> {
        let inner = match &self.action {
            DraftAction::Together(steps) => steps.as_slice(),
            _ => &[],
        };
        let inner = inner.iter().flat_map(DraftStep::with_inner);
        [self].into_iter().chain(inner).collect()
    }

    /// How long it takes hangs on an event.
    pub fn waits_for_an_event(&self) -> bool {
        let mut inner = self.with_inner().into_iter();
        inner.any(|step| matches!(step.action, DraftAction::Await(_)))
    }

    pub fn fault(&self) -> Option<&DraftFault> {
        match &self.action {
            DraftAction::Fault(fault) => Some(fault),
            _ => None,
        }
    }
}

impl DraftFault {
    /// The nodes of which it befalls one; none for faults of links.
    pub fn nodes(&self) -> &[At<String>] {
        match &self.befalls {
            Befalls::Node { choices, .. } => choices,
            Befalls::Groups { .. } | Befalls::Links { .. } => &[],
        }
    }

    pub fn may_befall(&self, node: &str) -> bool {
        self.nodes().iter().any(|choice| choice.value == node)
    }

    /// Stands until something undoes it, and this does not by itself.
    pub fn stays(&self) -> bool {
        self.kind.stands() && self.lasting.is_none()
    }
}

pub fn read(node: &Node, report: &mut Report) -> Option<DraftStep> {
    let keys = node.map("a step", report)?.iter().map(|(key, _)| key);
    let action = the_action(node.place, keys.clone().collect(), report)?;
    for key in keys {
        belongs(key, action, report);
    }
    // Keys that nobody asks for have just been complained about.
    let what = format!("`{}`", action.name());
    let mut fields = Fields::of(node, &what, report)?;
    let target = fields.optional(action.name())?;
    let action = match action {
        Action::Fault(FaultKind::Resume) => DraftAction::Resume(target.text("a node", report)?),
        Action::Fault(FaultKind::Thaw) => DraftAction::Thaw(target.text("a node", report)?),
        Action::Fault(kind) => DraftAction::Fault(DraftFault {
            kind,
            lasting: read_lasting(&mut fields, kind, report),
            befalls: read_befalls(kind, target, fields, report)?,
        }),
        Action::Wait if names_an_event(target) => DraftAction::Await(trigger(target, report)?),
        Action::Wait => DraftAction::Wait(span(target, report)?),
        Action::Heal => DraftAction::Heal(target.text("the name of an entry", report)?),
        Action::Together => DraftAction::Together(read_together(target, report)?),
    };
    Some(DraftStep {
        place: node.place,
        action,
    })
}

/// `a.acquired`, and not `2s`, `1.5s` or `1s..2s`.
fn names_an_event(node: &Node) -> bool {
    let is_name = |text: &str| text.starts_with(|c: char| c.is_ascii_lowercase());
    matches!(&node.value, Value::Scalar(text) if is_name(text) && text.contains('.'))
}

/// The one key of a step that says what it does. A key may be an action and a
/// modifier: toxics have a `latency` of their own.
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
    // Where it does not belong, that has been said.
    if !kind.stands() {
        return None;
    }
    let lasting = fields.read("for", report, span)?;
    if lasting.value.from.is_zero() {
        report.add(
            lasting.place,
            "a fault that lasts 0ms cannot be seen; give it a length",
        );
    }
    Some(lasting)
}

fn read_befalls(
    kind: FaultKind,
    target: &Node,
    mut fields: Fields,
    report: &mut Report,
) -> Option<Befalls> {
    Some(match kind {
        FaultKind::Partition => Befalls::Groups {
            effect: cut::read_by(&mut fields, report),
            groups: read_groups(target, report)?,
        },
        FaultKind::Refuse
        | FaultKind::Blackhole
        | FaultKind::OneWay
        | FaultKind::Stall
        | FaultKind::Reset
        | FaultKind::Latency
        | FaultKind::Bandwidth
        | FaultKind::Toxic => Befalls::Links {
            effect: match kind {
                FaultKind::Toxic => toxic::read(&mut fields, report),
                _ => cut::read_effect(kind, &mut fields, report),
            },
            patterns: read_links(target, report)?,
        },
        _ => Befalls::Node {
            how: node_fault::read(kind, &mut fields, report),
            choices: read_choices(target, report)?,
        },
    })
}

fn read_together(node: &Node, report: &mut Report) -> Option<Vec<DraftStep>> {
    let steps = node.list("steps", report)?;
    if steps.len() < 2 {
        report.add(node.place, "`together` takes at least two steps");
    }
    let steps = steps.iter().filter_map(|node| read(node, report));
    Some(steps.collect())
}
