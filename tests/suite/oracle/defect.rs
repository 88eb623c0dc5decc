//! The defects that can be planted, each in an otherwise correct world.

use super::settings::{MS, SECOND, Settings};
use super::trouble::Trouble;
use fastrand::Rng;
use fencepost::model::DoubtReason;
use fencepost::model::ViolationKind::{self, *};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Defect {
    /// The lock is granted to everybody who asks.
    GrantsEverybody,
    /// The lock is granted now and then although somebody holds it.
    GrantsWhileHeld,
    /// A worker enters although its server granted nothing.
    EntersWithoutGrant,
    TokensBackwards,
    TokenTwice,
    /// A waiter that was stopped believes a grant that is over.
    ToldTooLate,
    /// A release deletes whatever is there, and the worker is told so.
    FreesAnother,
    /// The same, and the worker is told that it was its own.
    FreesAnotherSilently,
    /// A renewal brings back a lock that has expired.
    RenewalRecreates,
    /// The lock of a killed holder stays for ever.
    NeverExpires,
    /// A waiter is forgotten, and the key stays free.
    NeverWoken,
    QueueOutOfOrder,
    /// A worker that can read its clock writes after the end of its validity.
    ClaimsPastValidity,
    AcceptsStale,
    AcceptsEqual,
    RefusesHighest,
    /// A refusal states another maximum, in the log and in the answer.
    StatesWrongMaximum,
    /// The log is right and only the answer states another maximum.
    AnswersWrongMaximum,
    /// A write is answered as a repetition of somebody else's.
    RepeatsForStranger,
    LosesAcknowledged,
    NamesPositionTwice,
    /// In the end a key that was written is not there.
    LosesValue,
    /// In the end a key holds an earlier value, or one that nobody wrote.
    KeepsWrongValue,
    /// A value that was refused is kept all the same.
    AppliesRefused,
    ChangesBody,
    InventsWrite,
    /// A read names a position at which nothing was accepted.
    ReadsWrongPosition,
    /// A read names the right position with a value that was never there.
    ReadsWrongValue,
}

impl Defect {
    pub const ALL: [Defect; 28] = [
        Defect::GrantsEverybody,
        Defect::GrantsWhileHeld,
        Defect::EntersWithoutGrant,
        Defect::TokensBackwards,
        Defect::TokenTwice,
        Defect::ToldTooLate,
        Defect::FreesAnother,
        Defect::FreesAnotherSilently,
        Defect::RenewalRecreates,
        Defect::NeverExpires,
        Defect::NeverWoken,
        Defect::QueueOutOfOrder,
        Defect::ClaimsPastValidity,
        Defect::AcceptsStale,
        Defect::AcceptsEqual,
        Defect::RefusesHighest,
        Defect::StatesWrongMaximum,
        Defect::AnswersWrongMaximum,
        Defect::RepeatsForStranger,
        Defect::LosesAcknowledged,
        Defect::NamesPositionTwice,
        Defect::LosesValue,
        Defect::KeepsWrongValue,
        Defect::AppliesRefused,
        Defect::ChangesBody,
        Defect::InventsWrite,
        Defect::ReadsWrongPosition,
        Defect::ReadsWrongValue,
    ];

    /// The kinds that are meant for it. Where there are several, each of them is true.
    pub fn meant(self) -> &'static [ViolationKind] {
        match self {
            Defect::GrantsEverybody | Defect::GrantsWhileHeld => &[GrantedWhileHeld],
            // Where nobody watches the server, two holders are all that can be seen.
            Defect::EntersWithoutGrant => &[ClaimedNotGranted, GrantedWhileHeld],
            Defect::TokensBackwards => &[TokenNotGrowing],
            Defect::TokenTwice => &[TokenGrantedTwice],
            Defect::ToldTooLate => &[AcquiredTooLate],
            Defect::FreesAnother | Defect::FreesAnotherSilently => &[FreedAnother],
            Defect::RenewalRecreates => &[RenewalRecreated],
            Defect::NeverExpires | Defect::NeverWoken => &[NeverGranted],
            Defect::QueueOutOfOrder => &[GrantedOutOfOrder],
            Defect::ClaimsPastValidity => &[ClaimedPastValidity],
            Defect::AcceptsStale => &[StaleAccept],
            Defect::AcceptsEqual => &[TokenRegression],
            Defect::RefusesHighest => &[RefusedWithoutReason],
            Defect::StatesWrongMaximum | Defect::AnswersWrongMaximum => &[UntrueRefusal],
            Defect::RepeatsForStranger => &[UntrueRepetition],
            // The log goes on at the position that was named for the write that it lost.
            Defect::LosesAcknowledged | Defect::NamesPositionTwice => {
                &[AcknowledgedWriteLost, PositionNamedTwice]
            }
            Defect::LosesValue | Defect::KeepsWrongValue | Defect::AppliesRefused => {
                &[ValueNotAccepted]
            }
            Defect::ChangesBody => &[BodyChanged],
            Defect::InventsWrite => &[UnknownWriter],
            Defect::ReadsWrongPosition | Defect::ReadsWrongValue => &[ReadNotAccepted],
        }
    }

    /// What else is true in a world with this defect. The rules of the log are not
    /// named here: those are compared row by row.
    pub fn explains(self) -> &'static [ViolationKind] {
        match self {
            // Two who hold a key at once: one of them claims what its server shows as the
            // other's, and may hear of its grant after that.
            Defect::GrantsEverybody | Defect::GrantsWhileHeld => {
                &[ClaimedNotGranted, GrantedOutOfOrder, AcquiredTooLate]
            }
            // It makes up its token.
            Defect::EntersWithoutGrant => &[TokenGrantedTwice, TokenNotGrowing, GrantedOutOfOrder],
            Defect::TokenTwice => &[TokenNotGrowing],
            // It goes on with a hold that is over, beside the next one.
            Defect::ToldTooLate => &[ClaimedPastValidity, ClaimedNotGranted],
            // The freed key is granted again while its holder is still covered; one that had
            // not heard of its grant yet hears of it too late, or waits again as the last.
            Defect::FreesAnother | Defect::FreesAnotherSilently => &[
                GrantedWhileHeld,
                ClaimedNotGranted,
                AcquiredTooLate,
                GrantedOutOfOrder,
            ],
            // Who believes in renewals has to believe that it was held all the time.
            Defect::RenewalRecreates => &[GrantedWhileHeld],
            // The answer names the position of the other's write, and the next write goes on
            // from there.
            Defect::RepeatsForStranger => {
                &[AcknowledgedWriteLost, PositionNamedTwice, ReadNotAccepted]
            }
            // At the position that was named stands another write, perhaps the hold's next.
            Defect::LosesAcknowledged | Defect::NamesPositionTwice => {
                &[ReadNotAccepted, BodyChanged]
            }
            // A repetition differs from what was kept of the first time.
            Defect::ChangesBody => &[UntrueRepetition],
            // A value that was not accepted can be read.
            Defect::AppliesRefused => &[ReadNotAccepted],
            _ => &[],
        }
    }

    /// Doubts that are fair beside what it breaks.
    pub fn leaves_doubt(self, reason: &DoubtReason) -> bool {
        match self {
            // Somebody waits for ever.
            Defect::NeverExpires | Defect::NeverWoken => {
                matches!(reason, DoubtReason::Unfinished { .. })
            }
            // The log does not have what workers were told.
            Defect::LosesAcknowledged | Defect::NamesPositionTwice | Defect::RepeatsForStranger => {
                *reason == DoubtReason::Contradiction
            }
            _ => false,
        }
    }

    pub fn is_of_the_lock(self) -> bool {
        self <= Defect::QueueOutOfOrder
    }

    /// Whether any trouble in its world would take the proof away.
    pub fn needs_quiet(self) -> bool {
        matches!(
            self,
            Defect::NeverExpires | Defect::NeverWoken | Defect::QueueOutOfOrder
        )
    }

    /// Gives the defect a world in which it has something to break.
    pub fn shape(self, settings: &mut Settings, random: &mut Rng) {
        let ttl_ns = settings.ttl_ns;
        match self {
            Defect::GrantsEverybody | Defect::GrantsWhileHeld | Defect::EntersWithoutGrant => {
                settings.rest_ns = ttl_ns / 4;
                settings.work_ns = ttl_ns / 2;
            }
            Defect::TokensBackwards | Defect::TokenTwice => settings.tokens = true,
            Defect::ToldTooLate => {
                settings.queue = true;
                settings.observed |= !settings.reports_validity;
                settings.trouble = Trouble::PauseOfWaiter;
                settings.patience_ns = None;
                settings.rest_ns = ttl_ns / 8;
                settings.work_ns = ttl_ns / 2;
            }
            Defect::FreesAnother | Defect::FreesAnotherSilently => {
                settings.observed |= self == Defect::FreesAnotherSilently;
                settings.gates = true;
                settings.skips_release = false;
                settings.renews = false;
                settings.work_ns = ttl_ns * 2;
                settings.rest_ns = ttl_ns / 4;
            }
            Defect::RenewalRecreates => {
                settings.observed = true;
                settings.reports_validity = false;
                settings.looks = false;
                settings.renews = true;
                settings.stalls = true;
                settings.work_ns = ttl_ns * 2;
            }
            Defect::NeverExpires => {
                settings.quiet_and_busy();
                settings.trouble = Trouble::KillOfHolder;
            }
            Defect::NeverWoken => settings.quiet_and_busy(),
            Defect::QueueOutOfOrder => {
                settings.quiet();
                settings.queue = true;
                settings.ttl_ns = MS * random.u64(6_000..12_000);
                settings.work_ns = 4 * SECOND;
                settings.rest_ns = 4 * SECOND;
            }
            Defect::ClaimsPastValidity => {
                settings.reports_validity = true;
                settings.renews = false;
                settings.stalls = false;
                settings.work_ns = ttl_ns * 2;
            }
            Defect::AcceptsStale
            | Defect::StatesWrongMaximum
            | Defect::AnswersWrongMaximum
            | Defect::RepeatsForStranger
            | Defect::AppliesRefused => {
                settings.late_writers();
                settings.values = true;
            }
            Defect::AcceptsEqual => {
                settings.fenced();
                settings.retries = true;
            }
            Defect::RefusesHighest => settings.fenced(),
            Defect::LosesAcknowledged
            | Defect::NamesPositionTwice
            | Defect::LosesValue
            | Defect::InventsWrite => {}
            Defect::KeepsWrongValue => settings.hashes |= !settings.values,
            Defect::ChangesBody => settings.hashes = true,
            Defect::ReadsWrongPosition => settings.reads = true,
            Defect::ReadsWrongValue => {
                settings.reads = true;
                settings.ours = true;
                settings.values = true;
            }
        }
    }
}

impl Settings {
    /// Somebody always wants what another holds.
    fn quiet_and_busy(&mut self) {
        self.quiet();
        self.rest_ns = self.ttl_ns / 8;
        self.work_ns = self.ttl_ns / 2;
    }

    /// Nothing but the defect happens.
    fn quiet(&mut self) {
        self.trouble = Trouble::None;
        self.stalls = false;
        self.failing = false;
        self.gates = false;
        self.patience_ns = None;
        self.services = 1;
    }

    fn fenced(&mut self) {
        self.tokens = true;
        self.fence = true;
    }

    /// Writes that come after the next holder's, and a fence to refuse them.
    fn late_writers(&mut self) {
        self.fenced();
        self.slow_writes = true;
        self.gates = true;
        self.work_ns = self.ttl_ns * 2;
        self.rest_ns = self.ttl_ns / 4;
    }
}
