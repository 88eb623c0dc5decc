use super::Promise;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What was broken, and by whose promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ViolationKind {
    /// A token was accepted below the highest that the resource had known.
    StaleAccept,
    /// The pair (token, seq) did not grow from one accepted write to the next.
    TokenRegression,
    /// One token, two owners.
    TokenTwoOwners,
    /// A, B, A: one hold's writes with another's in between.
    InterleavedWriters,
    /// A write replaced a value that its writer had never read.
    LostUpdate,
    /// The resource holds something else than what it accepted last, or nothing.
    ValueNotAccepted,
    /// A worker was told 200, and the log does not have the write.
    AcknowledgedWriteLost,
    /// Two acknowledged writes were given one position of the log.
    PositionNamedTwice,
    /// A write was refused although nothing accepted before was as high.
    RefusedWithoutReason,
    /// A refusal names another maximum than the true one.
    UntrueRefusal,
    /// A write was answered as a repetition of another one than its own.
    UntrueRepetition,
    /// The log holds another body than the one that was sent.
    BodyChanged,
    /// A write was made from something that was never accepted.
    ReadNotAccepted,
    /// The log has an accepted write that no worker sent.
    UnknownWriter,
    /// A key was granted while another's covered time certainly lasted.
    GrantedWhileHeld,
    /// A worker claims a key that its server granted to somebody else, or to nobody.
    ClaimedNotGranted,
    /// A later grant has a lower token.
    TokenNotGrowing,
    /// Two grants have one token.
    TokenGrantedTwice,
    /// A worker was told of a grant that was over already.
    AcquiredTooLate,
    /// A release freed what somebody else held.
    FreedAnother,
    /// A worker that could read its clock went on after the end of its validity.
    ClaimedPastValidity,
    /// Nobody held a key, somebody asked for it, and was not granted it in time.
    NeverGranted,
    /// Somebody was granted a key before another who had come first.
    GrantedOutOfOrder,
    /// A renewal brought back a lock that was gone.
    RenewalRecreated,
}

/// Whose word a violation breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Party {
    /// What comes of two holders where nothing compares tokens.
    Order,
    /// The resource's own promises, whether it compares tokens or not.
    Resource,
    Lock,
}

impl ViolationKind {
    pub const ALL: [ViolationKind; 24] = [
        ViolationKind::StaleAccept,
        ViolationKind::TokenRegression,
        ViolationKind::TokenTwoOwners,
        ViolationKind::InterleavedWriters,
        ViolationKind::LostUpdate,
        ViolationKind::ValueNotAccepted,
        ViolationKind::AcknowledgedWriteLost,
        ViolationKind::PositionNamedTwice,
        ViolationKind::RefusedWithoutReason,
        ViolationKind::UntrueRefusal,
        ViolationKind::UntrueRepetition,
        ViolationKind::BodyChanged,
        ViolationKind::ReadNotAccepted,
        ViolationKind::UnknownWriter,
        ViolationKind::GrantedWhileHeld,
        ViolationKind::ClaimedNotGranted,
        ViolationKind::TokenNotGrowing,
        ViolationKind::TokenGrantedTwice,
        ViolationKind::AcquiredTooLate,
        ViolationKind::FreedAnother,
        ViolationKind::ClaimedPastValidity,
        ViolationKind::NeverGranted,
        ViolationKind::GrantedOutOfOrder,
        ViolationKind::RenewalRecreated,
    ];

    pub fn name(self) -> &'static str {
        match self {
            ViolationKind::StaleAccept => "stale_accept",
            ViolationKind::TokenRegression => "token_regression",
            ViolationKind::TokenTwoOwners => "token_two_owners",
            ViolationKind::InterleavedWriters => "interleaved_writers",
            ViolationKind::LostUpdate => "lost_update",
            ViolationKind::ValueNotAccepted => "value_not_accepted",
            ViolationKind::AcknowledgedWriteLost => "acknowledged_write_lost",
            ViolationKind::PositionNamedTwice => "position_named_twice",
            ViolationKind::RefusedWithoutReason => "refused_without_reason",
            ViolationKind::UntrueRefusal => "untrue_refusal",
            ViolationKind::UntrueRepetition => "untrue_repetition",
            ViolationKind::BodyChanged => "body_changed",
            ViolationKind::ReadNotAccepted => "read_not_accepted",
            ViolationKind::UnknownWriter => "unknown_writer",
            ViolationKind::GrantedWhileHeld => "granted_while_held",
            ViolationKind::ClaimedNotGranted => "claimed_not_granted",
            ViolationKind::TokenNotGrowing => "token_not_growing",
            ViolationKind::TokenGrantedTwice => "token_granted_twice",
            ViolationKind::AcquiredTooLate => "acquired_too_late",
            ViolationKind::FreedAnother => "freed_another",
            ViolationKind::ClaimedPastValidity => "claimed_past_validity",
            ViolationKind::NeverGranted => "never_granted",
            ViolationKind::GrantedOutOfOrder => "granted_out_of_order",
            ViolationKind::RenewalRecreated => "renewal_recreated",
        }
    }

    pub fn party(self) -> Party {
        match self {
            ViolationKind::StaleAccept
            | ViolationKind::TokenRegression
            | ViolationKind::TokenTwoOwners
            | ViolationKind::InterleavedWriters
            | ViolationKind::LostUpdate => Party::Order,
            ViolationKind::ValueNotAccepted
            | ViolationKind::AcknowledgedWriteLost
            | ViolationKind::PositionNamedTwice
            | ViolationKind::RefusedWithoutReason
            | ViolationKind::UntrueRefusal
            | ViolationKind::UntrueRepetition
            | ViolationKind::BodyChanged
            | ViolationKind::ReadNotAccepted
            | ViolationKind::UnknownWriter => Party::Resource,
            ViolationKind::GrantedWhileHeld
            | ViolationKind::ClaimedNotGranted
            | ViolationKind::TokenNotGrowing
            | ViolationKind::TokenGrantedTwice
            | ViolationKind::AcquiredTooLate
            | ViolationKind::FreedAnother
            | ViolationKind::ClaimedPastValidity
            | ViolationKind::NeverGranted
            | ViolationKind::GrantedOutOfOrder
            | ViolationKind::RenewalRecreated => Party::Lock,
        }
    }

    /// The promise of a lock that it breaks.
    pub fn promise(self) -> Option<Promise> {
        Some(match self {
            ViolationKind::GrantedWhileHeld | ViolationKind::ClaimedNotGranted => {
                Promise::Exclusion
            }
            ViolationKind::TokenNotGrowing | ViolationKind::TokenGrantedTwice => Promise::Tokens,
            ViolationKind::AcquiredTooLate => Promise::Timeliness,
            ViolationKind::FreedAnother => Promise::Release,
            ViolationKind::ClaimedPastValidity => Promise::Loss,
            ViolationKind::NeverGranted => Promise::Progress,
            ViolationKind::GrantedOutOfOrder => Promise::Order,
            ViolationKind::RenewalRecreated => Promise::Renewal,
            _ => return None,
        })
    }

    pub fn parse(text: &str) -> Option<ViolationKind> {
        ViolationKind::ALL.into_iter().find(|k| k.name() == text)
    }
}

impl fmt::Display for ViolationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
