use super::Promise;
use serde::{Deserialize, Serialize};

/// The party whose promise a violation breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// Nobody's promise: the result of two holders if nothing compares tokens.
    Order,
    /// The resource's own promises, whether it compares tokens or not.
    Resource,
    Lock,
}

/// The only list of kinds: a sentence with the meaning of each, the party whose promise
/// it breaks, and, for the lock's, which promise and the words of a story for the break.
macro_rules! violation_kinds {
    ($($kind:ident: $means:literal, $party:ident $(breaks $promise:ident: $deed:literal)?;)*) => {
        /// What was broken, and by whose promise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize, strum::Display, strum::EnumString, strum::IntoStaticStr)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "snake_case")]
        #[strum(serialize_all = "snake_case")]
        pub enum ViolationKind {
            $(#[doc = $means] $kind,)*
        }

        impl ViolationKind {
            pub const ALL: [ViolationKind; [$($means),*].len()] = [$(ViolationKind::$kind),*];

            pub fn means(self) -> &'static str {
                match self {
                    $(ViolationKind::$kind => $means,)*
                }
            }

            pub fn party(self) -> Party {
                match self {
                    $(ViolationKind::$kind => Party::$party,)*
                }
            }

            /// Returns the promise of a lock that it breaks, and the words of a story for
            /// that.
            fn broken_promise(self) -> Option<(Promise, &'static str)> {
                match self {
                    $(ViolationKind::$kind => None$(.or(Some((Promise::$promise, $deed))))?,)*
                }
            }
        }
    };
}

violation_kinds! {
    // The results of two holders if nothing compares tokens.
    StaleAccept: "The resource accepted a token below the highest that it had known for the key.", Order;
    TokenRegression: "The pair (token, seq) did not grow from one accepted write to the next.", Order;
    TokenTwoOwners: "Two owners wrote with the same token, and both writes were accepted.", Order;
    InterleavedWriters: "A wrote, B wrote, and A wrote again with the same hold: A, B, A.", Order;
    LostUpdate: "A write replaced a value that its writer had never read.", Order;
    // The promises of the resource, whether it compares tokens or not.
    ValueNotAccepted: "At the end the resource holds something else than what it accepted last, or nothing.", Resource;
    AcknowledgedWriteLost: "A worker was told 200, and the log does not have the write.", Resource;
    PositionNamedTwice: "Two acknowledged writes were given the same position of the log.", Resource;
    RefusedWithoutReason: "The resource refused a write although it had accepted nothing as high before.", Resource;
    UntrueRefusal: "A refusal names another maximum than the true one.", Resource;
    UntrueRepetition: "A write was answered as a repetition, but of a write that was not its own.", Resource;
    BodyChanged: "The log holds another body than the one that was sent.", Resource;
    ReadNotAccepted: "A write was made from a value that the resource had never accepted.", Resource;
    UnknownWriter: "The log has an accepted write that no worker sent.", Resource;
    // The promises of the lock, and the deed of the worker that breaks them, in the words
    // of a story.
    GrantedWhileHeld: "The lock granted a key while another worker's hold was certainly still covered.",
        Lock breaks Exclusion: "holds {key} beside {other}";
    ClaimedNotGranted: "A worker claims a key that the lock server granted to somebody else, or to nobody.",
        Lock breaks Exclusion: "claims {key} without having been granted it";
    TokenNotGrowing: "A grant that was asked for after another one was over has a lower token.",
        Lock breaks Tokens: "has a lower token than {other} had before";
    TokenGrantedTwice: "Two grants have the same token.",
        Lock breaks Tokens: "has the token that {other} has had";
    AcquiredTooLate: "A worker was told of a grant that was certainly over already.",
        Lock breaks Timeliness: "is told of a grant of {key} that is over";
    FreedAnother: "A release freed a lock that somebody else held.",
        Lock breaks Release: "has freed the lock of {other} on {key}";
    ClaimedPastValidity: "A worker that could read its clock went on after the end of its validity.",
        Lock breaks Loss: "goes on with {key} after the end of its validity";
    NeverGranted: "Nobody held a key, a live worker asked for it, and it was not granted in time.",
        Lock breaks Progress: "is not granted {key}, although nobody holds it";
    GrantedOutOfOrder: "The lock granted a key to somebody before another who had come first.",
        Lock breaks Order: "is granted {key} before {other}";
    RenewalRecreated: "A renewal brought back a lock that was gone.",
        Lock breaks Renewal: "has {key} again by a renewal";
}

impl ViolationKind {
    pub fn name(self) -> &'static str {
        self.into()
    }

    pub fn promise(self) -> Option<Promise> {
        self.broken_promise().map(|(promise, _)| promise)
    }

    /// Returns the deed of the worker that breaks a promise of the lock, in the words of
    /// a story.
    pub fn deed(self, key: &str, other: &str) -> String {
        let deed = self.broken_promise().map(|(_, deed)| deed);
        let deed = deed.unwrap_or("breaks the promise about {key}");
        deed.replace("{other}", other).replace("{key}", key)
    }

    /// Returns whose promise it breaks: `lock: exclusion`, `resource`, `order of writes`.
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
        let docs = include_str!("../../../../scenarios/README.md");
        for kind in ViolationKind::ALL {
            let row = format!("| `{kind}` | {} | {} |", kind.breaks(), kind.means());
            assert!(docs.contains(&row), "scenarios/README.md needs\n{row}");
        }
    }
}
