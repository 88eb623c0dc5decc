use super::{Party, ViolationKind};

impl ViolationKind {
    /// What it means, in one plain sentence.
    pub fn means(self) -> &'static str {
        match self {
            ViolationKind::StaleAccept => {
                "The resource accepted a token below the highest that it had known for the key."
            }
            ViolationKind::TokenRegression => {
                "The pair (token, seq) did not grow from one accepted write to the next."
            }
            ViolationKind::TokenTwoOwners => {
                "Two owners wrote with the same token, and both writes were accepted."
            }
            ViolationKind::InterleavedWriters => {
                "A wrote, B wrote, and A wrote again with the same hold: A, B, A."
            }
            ViolationKind::LostUpdate => "A write replaced a value that its writer had never read.",
            ViolationKind::ValueNotAccepted => {
                "At the end the resource holds something else than what it accepted last, or nothing."
            }
            ViolationKind::AcknowledgedWriteLost => {
                "A worker was told 200, and the log does not have the write."
            }
            ViolationKind::PositionNamedTwice => {
                "Two acknowledged writes were given the same position of the log."
            }
            ViolationKind::RefusedWithoutReason => {
                "The resource refused a write although it had accepted nothing as high before."
            }
            ViolationKind::UntrueRefusal => "A refusal names another maximum than the true one.",
            ViolationKind::UntrueRepetition => {
                "A write was answered as a repetition, but of a write that was not its own."
            }
            ViolationKind::BodyChanged => "The log holds another body than the one that was sent.",
            ViolationKind::ReadNotAccepted => {
                "A write was made from a value that the resource had never accepted."
            }
            ViolationKind::UnknownWriter => "The log has an accepted write that no worker sent.",
            ViolationKind::GrantedWhileHeld => {
                "The lock granted a key while another worker's hold was certainly still covered."
            }
            ViolationKind::ClaimedNotGranted => {
                "A worker claims a key that the lock server granted to somebody else, or to nobody."
            }
            ViolationKind::TokenNotGrowing => {
                "A grant that was asked for after another one was over has a lower token."
            }
            ViolationKind::TokenGrantedTwice => "Two grants have the same token.",
            ViolationKind::AcquiredTooLate => {
                "A worker was told of a grant that was certainly over already."
            }
            ViolationKind::FreedAnother => "A release freed a lock that somebody else held.",
            ViolationKind::ClaimedPastValidity => {
                "A worker that could read its clock went on after the end of its validity."
            }
            ViolationKind::NeverGranted => {
                "Nobody held a key, a live worker asked for it, and it was not granted in time."
            }
            ViolationKind::GrantedOutOfOrder => {
                "The lock granted a key to somebody before another who had come first."
            }
            ViolationKind::RenewalRecreated => "A renewal brought back a lock that was gone.",
        }
    }

    /// Whose word it breaks: `lock: exclusion`, `resource`, `order of writes`.
    pub fn breaks(self) -> String {
        match (self.promise(), self.party()) {
            (Some(promise), _) => format!("lock: {promise}"),
            (None, Party::Lock) => "lock".to_owned(),
            (None, Party::Resource) => "resource".to_owned(),
            (None, Party::Order) => "order of writes".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_kind_has_a_sentence_of_its_own() {
        let sentences: BTreeSet<&str> = ViolationKind::ALL.map(ViolationKind::means).into();
        assert_eq!(sentences.len(), ViolationKind::ALL.len());
        let is_one = |text: &&str| text.ends_with('.') && text.matches(". ").count() == 0;
        assert!(sentences.iter().all(is_one), "{sentences:?}");
    }

    #[test]
    fn the_docs_have_a_row_for_every_kind_in_the_same_words() {
        let docs = include_str!("../../scenarios/README.md");
        for kind in ViolationKind::ALL {
            let row = format!("| `{kind}` | {} | {} |", kind.breaks(), kind.means());
            assert!(docs.contains(&row), "scenarios/README.md needs\n{row}");
        }
    }
}
