//! Deliberate defects. A run against each of them must come out as 'not as expected': a judge
//! that never says no proves nothing.
//!
//! Release builds contain none of this.

use super::state::{Pair, Ruling, WriteRequest};
use crate::model::{FencingToken, LogRow};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
pub enum Mutant {
    /// Accepts any token although the fence is on.
    #[strum(to_string = "resource-ignores-token")]
    IgnoreToken,
    /// Accepts the latest pair again with another body.
    #[strum(to_string = "resource-accepts-equal-tokens")]
    AcceptEqual,
    /// Checks the token after it has applied the write: the refusal is answered and logged, but
    /// the value has changed.
    #[strum(to_string = "resource-applies-what-it-refuses")]
    ApplyRefused,
    /// Forgets the highest token at a restart; the values stay.
    #[strum(to_string = "resource-forgets-at-restart")]
    ForgetMaxFence,
    /// Answers when the write has reached the page cache, which a power cut erases.
    #[strum(to_string = "resource-answers-before-sync")]
    AnswerBeforeSync,
    /// Loses the value of one key when the whole log is read, as a compaction might. The log
    /// and every answer to a write are correct.
    #[strum(to_string = "resource-loses-a-key")]
    LoseKey,
    /// Answers every client that sends the latest pair as if it repeated the first write with
    /// that pair, whoever it is and whatever it sends.
    #[strum(to_string = "resource-duplicates-for-strangers")]
    RepeatForStrangers,
    /// Refuses every second write that exceeds all earlier ones.
    #[strum(to_string = "resource-refuses-the-highest")]
    RefuseHighest,
    /// Reports the token that it would accept as the highest token that it has seen.
    #[strum(to_string = "resource-states-a-wrong-maximum")]
    WrongMaximum,
    /// Answers two writes with the position of the first, as a program might that returns the
    /// batch in which a write was synced.
    #[strum(to_string = "resource-names-a-position-twice")]
    PositionTwice,
}

impl Mutant {
    pub const ALL: &[Mutant] = Mutant::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The situation in which a write arrives.
pub(super) struct Scene<'a> {
    pub write: &'a WriteRequest,
    /// The pair that it has to exceed, and the position of the write with that pair.
    pub highest: Option<(Pair, u64)>,
    /// The position of the last row of the log.
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
            // Without a token no fence could refuse it.
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

/// Returns the position that an accepted write is answered with.
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
            assert_eq!(mutant.name().parse(), Ok(*mutant));
        }
        assert!("resource".parse::<Mutant>().is_err());
    }
}
