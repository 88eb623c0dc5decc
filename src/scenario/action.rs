//! What a step of the timeline can do, and which keys go with it: the one
//! table that reading, refusing and the schema share.

use crate::model::FaultKind;

/// A key that makes a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A fault, or the resume or thaw that ends one.
    Fault(FaultKind),
    Wait,
    Heal,
    Together,
}

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

    /// The keys that may stand beside its own.
    pub fn modifiers(self) -> &'static [&'static str] {
        let Action::Fault(kind) = self else {
            return &[];
        };
        match kind {
            FaultKind::Pause | FaultKind::Freeze => &["for", "longer_than"],
            FaultKind::Partition | FaultKind::Isolate => &["for", "by"],
            FaultKind::Latency => &["for", "delay", "jitter"],
            FaultKind::Bandwidth => &["for", "rate"],
            FaultKind::Toxic => &[
                "for",
                "type",
                "toxicity",
                "stream",
                "latency",
                "jitter",
                "rate",
                "timeout",
                "average_size",
                "size_variation",
                "delay",
                "bytes",
            ],
            FaultKind::Loss => &["for", "percent"],
            FaultKind::Skew => &["for", "by", "clock"],
            FaultKind::Drift => &["for", "ppm", "clock"],
            FaultKind::Kill
            | FaultKind::Refuse
            | FaultKind::Blackhole
            | FaultKind::OneWay
            | FaultKind::Stall
            | FaultKind::Reset
            | FaultKind::Disconnect
            | FaultKind::Drop => &["for"],
            FaultKind::Resume
            | FaultKind::Thaw
            | FaultKind::Restart
            | FaultKind::RestartEmpty
            | FaultKind::Promote => &[],
        }
    }

    /// Its own key and those that may stand beside it.
    pub fn keys(self) -> impl Iterator<Item = &'static str> {
        [self.name()]
            .into_iter()
            .chain(self.modifiers().iter().copied())
    }

    /// The actions that a modifier goes with; none where it is not one.
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
    fn what_stands_can_have_a_length_and_nothing_else_can() {
        for action in Action::all() {
            let stands = matches!(action, Action::Fault(kind) if kind.stands());
            let lasts = action.modifiers().contains(&"for");
            assert_eq!(lasts, stands, "{}", action.name());
        }
    }
}
