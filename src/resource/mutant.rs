//! Mistakes made on purpose. A run against each of them must come out as
//! 'not as expected': a judge that never says no proves nothing.
//!
//! Release builds hold none of this.

use super::state::Ruling;
use crate::model::LogRow;
use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Accepts any token although the fence is on.
    IgnoreToken,
    /// Accepts the latest pair again with another body.
    AcceptEqual,
    /// Looks at the token after it has applied the write: the refusal is answered
    /// and logged, and the value is there all the same.
    ApplyRefused,
    /// Forgets the highest token at a restart; the values stay.
    ForgetMaxFence,
    /// Answers when the write has reached the page cache, which a power cut takes.
    AnswerBeforeSync,
}

impl Mutant {
    pub const ALL: [Mutant; 5] = [
        Mutant::IgnoreToken,
        Mutant::AcceptEqual,
        Mutant::ApplyRefused,
        Mutant::ForgetMaxFence,
        Mutant::AnswerBeforeSync,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mutant::IgnoreToken => "resource-ignores-token",
            Mutant::AcceptEqual => "resource-accepts-equal-tokens",
            Mutant::ApplyRefused => "resource-applies-what-it-refuses",
            Mutant::ForgetMaxFence => "resource-forgets-at-restart",
            Mutant::AnswerBeforeSync => "resource-answers-before-sync",
        }
    }

    pub fn parse(name: &str) -> Option<Mutant> {
        Mutant::ALL.into_iter().find(|m| m.name() == name)
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

pub(super) fn bend(mutant: Option<Mutant>, ruling: Ruling) -> Ruling {
    match (mutant, ruling) {
        (Some(Mutant::IgnoreToken), _) => Ruling::Apply,
        (Some(Mutant::AcceptEqual), Ruling::Refuse { seen, got }) if seen == got => Ruling::Apply,
        _ => ruling,
    }
}

pub(super) fn forget(mutant: Option<Mutant>, mut row: LogRow) -> LogRow {
    if mutant == Some(Mutant::ForgetMaxFence) {
        row.token = None;
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_is_found_by_its_name() {
        for mutant in Mutant::ALL {
            assert_eq!(Mutant::parse(mutant.name()), Some(mutant));
        }
        assert_eq!(Mutant::parse("resource"), None);
    }
}
