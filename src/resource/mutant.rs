//! Mistakes made on purpose. A run against each of them must come out as
//! 'not as expected': a judge that never says no proves nothing.
//!
//! Release builds hold none of this.

use super::state::{Pair, Ruling, WriteRequest};
use crate::model::{FencingToken, LogRow};
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
    /// Loses the value of one key when its whole log is read, as a compaction
    /// might. The log and every answer to a write are right.
    LoseKey,
    /// Answers everybody who comes with the latest pair as if they repeated the
    /// write that had it first, whoever they are and whatever they send.
    RepeatForStrangers,
    /// Refuses every second write that exceeds all before it.
    RefuseHighest,
    /// States the token that it would accept as the one that it has seen.
    WrongMaximum,
    /// Answers two writes with the position of the first, as somebody might who
    /// names the batch that a write was synced with.
    PositionTwice,
}

impl Mutant {
    pub const ALL: [Mutant; 10] = [
        Mutant::IgnoreToken,
        Mutant::AcceptEqual,
        Mutant::ApplyRefused,
        Mutant::ForgetMaxFence,
        Mutant::AnswerBeforeSync,
        Mutant::LoseKey,
        Mutant::RepeatForStrangers,
        Mutant::RefuseHighest,
        Mutant::WrongMaximum,
        Mutant::PositionTwice,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mutant::IgnoreToken => "resource-ignores-token",
            Mutant::AcceptEqual => "resource-accepts-equal-tokens",
            Mutant::ApplyRefused => "resource-applies-what-it-refuses",
            Mutant::ForgetMaxFence => "resource-forgets-at-restart",
            Mutant::AnswerBeforeSync => "resource-answers-before-sync",
            Mutant::LoseKey => "resource-loses-a-key",
            Mutant::RepeatForStrangers => "resource-duplicates-for-strangers",
            Mutant::RefuseHighest => "resource-refuses-the-highest",
            Mutant::WrongMaximum => "resource-states-a-wrong-maximum",
            Mutant::PositionTwice => "resource-names-a-position-twice",
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

/// Where a write comes in.
pub(super) struct Scene<'a> {
    pub write: &'a WriteRequest,
    /// The pair that it has to exceed, and the position of the write that had it.
    pub highest: Option<(Pair, u64)>,
    /// Of the last row of the log.
    pub position: u64,
}

pub(super) fn bend(mutant: Option<Mutant>, ruling: Ruling, scene: &Scene) -> Ruling {
    let Some(mutant) = mutant else { return ruling };
    match (mutant, ruling, scene.highest) {
        (Mutant::IgnoreToken, ..) => Ruling::Apply,
        (Mutant::AcceptEqual, Ruling::Refuse { seen, got }, _) if seen == got => Ruling::Apply,
        (Mutant::RepeatForStrangers, Ruling::Refuse { seen, got }, Some((_, position)))
            if seen == got =>
        {
            Ruling::Repeat { position }
        }
        (Mutant::RefuseHighest, Ruling::Apply, Some((seen, _))) if scene.position % 2 == 1 => {
            // Without a token there is no fence that could refuse it.
            scene.write.token.map_or(ruling, |token| {
                let seq = scene.write.token_seq;
                let got = Pair { token, seq };
                Ruling::Refuse { seen, got }
            })
        }
        (Mutant::WrongMaximum, Ruling::Refuse { seen, got }, _) => {
            let token = FencingToken(seen.token.0 + 1);
            let seen = Pair { token, ..seen };
            Ruling::Refuse { seen, got }
        }
        _ => ruling,
    }
}

/// The position that an accepted write is answered with.
pub(super) fn name(mutant: Option<Mutant>, position: u64) -> u64 {
    if mutant == Some(Mutant::PositionTwice) {
        return position - 1 + position % 2;
    }
    position
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
