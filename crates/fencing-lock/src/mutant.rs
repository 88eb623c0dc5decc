//! Mistakes made on purpose, each of which real locks have made. A test or a scenario has
//! to notice each: docs/mutants.md says which.
//!
//! Release builds contain none of this.

use std::borrow::Cow;
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(parse_err_ty = String, parse_err_fn = known)]
pub enum Mutant {
    /// Draws its token when it begins to wait, and keeps it until it is granted
    /// the lock: by then, somebody else may have got a younger one.
    #[strum(to_string = "lock-takes-token-before-grant")]
    TokenBeforeGrant,
    /// Writes a token back to a node whose grant is over, and counts that.
    #[strum(to_string = "lock-writes-back-unconditionally")]
    WriteBackUnconditional,
    /// Deletes the lock no matter who holds it.
    #[strum(to_string = "lock-releases-without-compare")]
    ReleaseWithoutCompare,
    /// Creates the lock again if it is gone. It never takes the lock from another holder.
    #[strum(to_string = "lock-renew-recreates")]
    RenewRecreates,
    /// Gives every attempt the same owner, so an older attempt is mistaken for the
    /// present one.
    #[strum(to_string = "lock-reuses-nonce")]
    ReuseNonce,
    /// Grants the lock to everybody who asks, also while somebody else holds it. The
    /// tokens still grow.
    #[strum(to_string = "lock-grants-everybody")]
    GrantEverybody,
    /// Reports a lock as acquired that somebody else holds at the server.
    #[strum(to_string = "lock-enters-without-the-lock")]
    EnterWithoutLock,
    /// Sets no TTL, so a holder that dies blocks the key for ever.
    #[strum(to_string = "lock-never-expires")]
    NeverExpire,
    /// Gives each later grant a lower token.
    #[strum(to_string = "lock-tokens-backwards")]
    TokensBackwards,
    /// Counts a lock that was handed to it from the moment in which it hears of that: by
    /// then, its time may be over.
    #[strum(to_string = "lock-reports-a-late-hand-off")]
    LateHandOff,
}

/// One script, and the pairs of text that make the mistake in it: the original and its
/// replacement.
struct Edit(&'static str, &'static [[&'static str; 2]]);

const ACQUIRE: &str = include_str!("redis/scripts/acquire.lua");
const RELEASE: &str = include_str!("redis/scripts/release.lua");
const RENEW: &str = include_str!("redis/scripts/renew.lua");
const TOKEN: &str = include_str!("redis/scripts/token.lua");
const LINE: &str = include_str!("redis/scripts/line.lua");
const STAND: &str = include_str!("redis/scripts/stand.lua");
const REDLOCK_ACQUIRE: &str = include_str!("redlock/scripts/acquire.lua");
const REDLOCK_WRITE_BACK: &str = include_str!("redlock/scripts/write_back.lua");

impl Mutant {
    pub const ALL: &[Mutant] = Mutant::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }

    fn edits(self) -> &'static [Edit] {
        match self {
            Mutant::WriteBackUnconditional => &[Edit(
                REDLOCK_WRITE_BACK,
                &[["redis.call('GET', KEYS[1]) ~= ARGV[1]", "false"]],
            )],
            Mutant::ReleaseWithoutCompare => &[Edit(RELEASE, &[["holder ~= ARGV[1]", "false"]])],
            Mutant::RenewRecreates => &[Edit(
                RENEW,
                &[[
                    "return ARGV[3] * 8 -- expired",
                    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return ARGV[3] * 8 + 1",
                ]],
            )],
            Mutant::GrantEverybody => &[
                Edit(ACQUIRE, &[["'NX', 'PX'", "'PX'"]]),
                Edit(STAND, &[["if not holder then", "if true then"]]),
                Edit(REDLOCK_ACQUIRE, &[["'NX', 'PX'", "'PX'"]]),
            ],
            Mutant::EnterWithoutLock => &[
                Edit(
                    ACQUIRE,
                    &[[
                        "return {ARGV[4] * 8 + 2, redis.call('PTTL', KEYS[1])}",
                        "return granted(next_token(KEYS[2], ARGV[3]), ARGV[4])",
                    ]],
                ),
                Edit(
                    REDLOCK_ACQUIRE,
                    &[["return {ARGV[4] * 8 + 2, redis.call('PTTL', KEYS[1])}", ""]],
                ),
            ],
            Mutant::NeverExpire => &[
                Edit(ACQUIRE, &[["'NX', 'PX', ARGV[2]", "'NX'"]]),
                Edit(LINE, &[[", 'PX', ttl_ms", ""]]),
                Edit(STAND, &[[", 'PX', ttl_ms", ""]]),
                Edit(REDLOCK_ACQUIRE, &[["'NX', 'PX', ARGV[2]", "'NX'"]]),
                // Otherwise a renewal would repair it.
                Edit(RENEW, &[["redis.call('PEXPIRE', KEYS[1], ARGV[2])", ""]]),
            ],
            Mutant::TokensBackwards => &[
                Edit(
                    TOKEN,
                    &[[
                        "local token = redis.pcall('INCR', fence)",
                        "redis.call('SET', fence, '9007199254740991', 'NX')
                         local token = redis.pcall('DECR', fence)",
                    ]],
                ),
                // A proposal is a clock in microseconds. The difference is below every
                // present-day clock, so no client takes it for a proposal and counts on
                // from there.
                Edit(
                    REDLOCK_ACQUIRE,
                    &[
                        ["if counter < tonumber(ARGV[3])", "if false"],
                        [
                            "counter = counter + 1",
                            "counter = 3000000000000000 - ARGV[3]",
                        ],
                    ],
                ),
            ],
            Mutant::TokenBeforeGrant | Mutant::ReuseNonce | Mutant::LateHandOff => &[],
        }
    }
}

/// Returns `code` with the mutant's edits, or unchanged without a mutant. An edited
/// script may be a part of `code`.
pub(super) fn bend(mutant: Option<Mutant>, code: &'static str) -> Cow<'static, str> {
    let mut bent = Cow::Borrowed(code);
    let change = |script: String, [sound, wrong]: &[&str; 2]| script.replace(sound, wrong);
    for Edit(script, changes) in mutant.map_or(&[][..], Mutant::edits) {
        if bent.contains(script) {
            let wrong = changes.iter().fold(script.to_string(), change);
            bent = bent.replace(script, &wrong).into();
        }
    }
    bent
}

fn known(_: &str) -> String {
    let names: Vec<&str> = Mutant::ALL.iter().map(|mutant| mutant.name()).collect();
    format!("known: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_is_found_by_its_name() {
        for mutant in Mutant::ALL {
            assert_eq!(mutant.name().parse(), Ok(*mutant));
        }
        assert!("lock".parse::<Mutant>().is_err());
    }

    #[test]
    fn every_change_is_made_in_one_place_of_one_script() {
        for Edit(script, changes) in Mutant::ALL.iter().flat_map(|mutant| mutant.edits()) {
            for [sound, _] in *changes {
                assert_eq!(script.matches(sound).count(), 1, "{sound}");
            }
        }
        assert_ne!(bend(Some(Mutant::RenewRecreates), RENEW), RENEW);
        assert_eq!(bend(Some(Mutant::RenewRecreates), RELEASE), RELEASE);
        assert_eq!(bend(None, RENEW), RENEW);
    }

    #[test]
    fn a_script_that_is_a_part_of_another_is_changed_in_it() {
        const CODE: &str = concat!(
            include_str!("redis/scripts/token.lua"),
            include_str!("redis/scripts/line.lua"),
            include_str!("redis/scripts/stand.lua")
        );
        let bent = bend(Some(Mutant::NeverExpire), CODE);
        assert!(bent.starts_with(TOKEN) && !bent.contains("'PX', ttl_ms"));
        assert!(bend(Some(Mutant::TokensBackwards), CODE).contains("DECR"));
    }
}
