//! The actions of a timeline's steps, and the keys that go with each: the one table that reading,
//! refusing and the schema share.

use super::*;
use crate::faults::Key;
use crate::model::FaultClass;

/// A key that makes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A fault, or the resume or thaw that ends one.
    Fault(FaultKind),
    Wait,
    Heal,
    Together,
}

/// The key for the length of a fault ...
pub const FOR: &str = "for";
/// ... and for the time that a stop has to exceed.
pub const LONGER_THAN: &str = "longer_than";

impl Action {
    pub fn all() -> impl Iterator<Item = Action> {
        let others = [Action::Wait, Action::Heal, Action::Together];
        FaultKind::ALL.into_iter().map(Action::Fault).chain(others)
    }

    pub fn named(name: &str) -> Option<Action> {
        Action::all().find(|action| action.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Action::Fault(kind) => kind.name(),
            Action::Wait => "wait",
            Action::Heal => "heal",
            Action::Together => "together",
        }
    }

    /// Returns the keys that may be beside its own, for each shape that it may have.
    pub fn shapes(self) -> Vec<Vec<Key>> {
        let Action::Fault(kind) = self else {
            return vec![Vec::new()];
        };
        let with_common = |own: Vec<Key>| {
            let mut keys = Vec::new();
            if kind.lasts() {
                let span = json!({ "$ref": "#/$defs/span" });
                keys.push(Key::optional(FOR, span));
            }
            if kind.class() == FaultClass::Stop {
                let bound =
                    json!({ "anyOf": [{ "const": "ttl" }, { "$ref": "#/$defs/duration" }] });
                keys.push(Key::optional(LONGER_THAN, bound));
            }
            keys.extend(own);
            keys
        };
        let shapes = (faults::form(kind).keys)();
        shapes.into_iter().map(with_common).collect()
    }

    /// Returns the keys of all shapes, each once.
    pub fn modifiers(self) -> Vec<&'static str> {
        once_each(self.shapes().into_iter().flatten().map(|key| key.name))
    }

    /// Returns its own key and those that may be beside it.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        [self.name()].into_iter().chain(self.modifiers())
    }

    /// Returns the actions that a modifier goes with; none if the key is not a modifier.
    pub fn with_modifier(key: &str) -> Vec<&'static str> {
        Action::all()
            .filter(|action| action.modifiers().contains(&key))
            .map(Action::name)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lasts_can_have_a_length_and_nothing_else_can() {
        for action in Action::all() {
            let lasts = matches!(action, Action::Fault(kind) if kind.lasts());
            assert_eq!(
                action.modifiers().contains(&FOR),
                lasts,
                "{}",
                action.name()
            );
        }
    }
}
