//! Mistakes made on purpose, each of them one that real locks have made. A
//! test or a scenario has to notice each: docs/mutants.md says which.
//!
//! Release builds hold none of this.

use crate::model::{Backend, LockOptions, ReleaseStyle, WaitPolicy};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// Draws its token when it begins to wait, and keeps it until it is granted
    /// the lock: by then, somebody else may have got a younger one.
    TokenBeforeGrant,
    /// Writes a token back to a node whose grant is over, and counts that.
    WriteBackUnconditional,
    /// Deletes the lock whoever holds it.
    ReleaseWithoutCompare,
    /// Creates the lock again where it is gone. It takes it from nobody.
    RenewRecreates,
    /// Every attempt has the same owner, so an older one is taken for the
    /// present one.
    ReuseNonce,
    /// Grants the lock to whoever asks, also while somebody else holds it. The
    /// tokens grow all the same.
    GrantEverybody,
    /// Reports a lock as acquired that somebody else holds at the server.
    EnterWithoutLock,
    /// Sets no TTL, so a holder that dies blocks the key for ever.
    NeverExpire,
    /// Each later grant has a lower token.
    TokensBackwards,
}

/// One script, and the changes that make the mistake in it: what stands there,
/// and what the mutant has instead.
struct Edit {
    script: &'static str,
    changes: &'static [[&'static str; 2]],
}

const ACQUIRE: &str = include_str!("redis/scripts/acquire.lua");
const RELEASE: &str = include_str!("redis/scripts/release.lua");
const RENEW: &str = include_str!("redis/scripts/renew.lua");
const TOKEN: &str = include_str!("redis/scripts/token.lua");
const LINE: &str = include_str!("redis/scripts/line.lua");
const STAND: &str = include_str!("redis/scripts/stand.lua");
const REDLOCK_ACQUIRE: &str = include_str!("redlock/scripts/acquire.lua");
const REDLOCK_WRITE_BACK: &str = include_str!("redlock/scripts/write_back.lua");

impl Mutant {
    pub const ALL: [Mutant; 9] = [
        Mutant::TokenBeforeGrant,
        Mutant::WriteBackUnconditional,
        Mutant::ReleaseWithoutCompare,
        Mutant::RenewRecreates,
        Mutant::ReuseNonce,
        Mutant::GrantEverybody,
        Mutant::EnterWithoutLock,
        Mutant::NeverExpire,
        Mutant::TokensBackwards,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mutant::TokenBeforeGrant => "lock-takes-token-before-grant",
            Mutant::WriteBackUnconditional => "lock-writes-back-unconditionally",
            Mutant::ReleaseWithoutCompare => "lock-releases-without-compare",
            Mutant::RenewRecreates => "lock-renew-recreates",
            Mutant::ReuseNonce => "lock-reuses-nonce",
            Mutant::GrantEverybody => "lock-grants-everybody",
            Mutant::EnterWithoutLock => "lock-enters-without-the-lock",
            Mutant::NeverExpire => "lock-never-expires",
            Mutant::TokensBackwards => "lock-tokens-backwards",
        }
    }

    /// Whether this lock has the place where the mistake is made. Elsewhere it
    /// would change nothing, and prove nothing.
    pub fn is_in(self, lock: &LockOptions) -> bool {
        let redis = lock.backend == Backend::Redis;
        let without_line = redis && lock.wait != WaitPolicy::Queue;
        let compares = lock.release == ReleaseStyle::CompareAndDelete;
        let redlock = matches!(
            lock.backend,
            Backend::Redlock | Backend::RedlockUnsafeTokens
        );
        match self {
            Mutant::TokenBeforeGrant => without_line,
            Mutant::WriteBackUnconditional => lock.backend == Backend::Redlock,
            Mutant::ReleaseWithoutCompare => compares && (without_line || redlock),
            Mutant::RenewRecreates | Mutant::GrantEverybody | Mutant::NeverExpire => {
                redis || redlock
            }
            Mutant::ReuseNonce => redlock,
            Mutant::EnterWithoutLock => without_line || redlock || lock.backend == Backend::Etcd,
            // Without proposals, the tokens of Redlock would only stand still.
            Mutant::TokensBackwards => redis || lock.backend == Backend::Redlock,
        }
    }

    fn edits(self) -> &'static [Edit] {
        match self {
            Mutant::WriteBackUnconditional => &[Edit {
                script: REDLOCK_WRITE_BACK,
                changes: &[["redis.call('GET', KEYS[1]) ~= ARGV[1]", "false"]],
            }],
            Mutant::ReleaseWithoutCompare => &[Edit {
                script: RELEASE,
                changes: &[["holder ~= ARGV[1]", "false"]],
            }],
            Mutant::RenewRecreates => &[Edit {
                script: RENEW,
                changes: &[[
                    "return 0 -- expired",
                    "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1",
                ]],
            }],
            Mutant::GrantEverybody => &[
                Edit {
                    script: ACQUIRE,
                    changes: &[["'NX', 'PX'", "'PX'"]],
                },
                Edit {
                    script: STAND,
                    changes: &[["if not holder then", "if true then"]],
                },
                Edit {
                    script: REDLOCK_ACQUIRE,
                    changes: &[["'NX', 'PX'", "'PX'"]],
                },
            ],
            Mutant::EnterWithoutLock => &[
                Edit {
                    script: ACQUIRE,
                    changes: &[[
                        "return -1 - math.max(redis.call('PTTL', KEYS[1]), -1)",
                        "return next_token(KEYS[2], ARGV[3])",
                    ]],
                },
                Edit {
                    script: REDLOCK_ACQUIRE,
                    changes: &[["return {redis.call('PTTL', KEYS[1])}", ""]],
                },
            ],
            Mutant::NeverExpire => &[
                Edit {
                    script: ACQUIRE,
                    changes: &[["'NX', 'PX', ARGV[2]", "'NX'"]],
                },
                Edit {
                    script: LINE,
                    changes: &[[", 'PX', ttl_ms", ""], [", 'PX', asker_ttl_ms", ""]],
                },
                Edit {
                    script: REDLOCK_ACQUIRE,
                    changes: &[["'NX', 'PX', ARGV[2]", "'NX'"]],
                },
                // A renewal would mend it.
                Edit {
                    script: RENEW,
                    changes: &[["redis.call('PEXPIRE', KEYS[1], ARGV[2])", ""]],
                },
            ],
            Mutant::TokensBackwards => &[
                Edit {
                    script: TOKEN,
                    changes: &[[
                        "local token = redis.pcall('INCR', fence)",
                        "redis.call('SET', fence, '9007199254740991', 'NX')
                         local token = redis.pcall('DECR', fence)",
                    ]],
                },
                // A proposal is a clock in microseconds. What is left of this
                // number is below all clocks of our days, so no client takes
                // it for a proposal and counts on from there.
                Edit {
                    script: REDLOCK_ACQUIRE,
                    changes: &[[
                        "math.max(counter + 1, tonumber(ARGV[3]))",
                        "3000000000000000 - tonumber(ARGV[3])",
                    ]],
                },
            ],
            Mutant::TokenBeforeGrant | Mutant::ReuseNonce => &[],
        }
    }
}

/// The script as it is, or as the mutant has it. It may be a part of `code`.
pub(super) fn bend(mutant: Option<Mutant>, code: &'static str) -> Cow<'static, str> {
    let mut bent = Cow::Borrowed(code);
    for edit in mutant.map_or(&[][..], Mutant::edits) {
        if bent.contains(edit.script) {
            bent = bent.replace(edit.script, &edit.bent()).into();
        }
    }
    bent
}

impl Edit {
    fn bent(&self) -> String {
        let script = self.script.to_owned();
        let change = |script: String, [sound, wrong]: &[&str; 2]| script.replace(sound, wrong);
        self.changes.iter().fold(script, change)
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mutant {
    type Err = String;

    fn from_str(name: &str) -> Result<Mutant, String> {
        let found = Mutant::ALL.into_iter().find(|mutant| mutant.name() == name);
        let known = || Mutant::ALL.map(Mutant::name).join(", ");
        found.ok_or_else(|| format!("known: {}", known()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mutant_is_found_by_its_name() {
        for mutant in Mutant::ALL {
            assert_eq!(mutant.name().parse(), Ok(mutant));
        }
        assert!("lock".parse::<Mutant>().is_err());
    }

    #[test]
    fn every_change_is_made_in_one_place_of_one_script() {
        for edit in Mutant::ALL.into_iter().flat_map(Mutant::edits) {
            for [sound, _] in edit.changes {
                assert_eq!(edit.script.matches(sound).count(), 1, "{sound}");
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
        let [before, rest] = [TOKEN, STAND];
        assert!(bent.starts_with(before) && bent.ends_with(rest));
        assert!(!bent.contains("'PX', ttl_ms") && !bent.contains("'PX', asker_ttl_ms"));
        assert!(bend(Some(Mutant::TokensBackwards), CODE).contains("DECR"));
    }

    #[test]
    fn a_mutant_is_only_in_locks_that_it_changes() {
        let lock = |backend, wait| LockOptions {
            backend,
            wait,
            ..LockOptions::default()
        };
        for mutant in Mutant::ALL {
            let redis = mutant.is_in(&lock(Backend::Redis, WaitPolicy::Spin));
            let redlock = mutant.is_in(&lock(Backend::Redlock, WaitPolicy::Spin));
            assert!(redis || redlock, "{mutant}");
            let etcd = mutant.is_in(&lock(Backend::Etcd, WaitPolicy::Spin));
            assert_eq!(etcd, mutant == Mutant::EnterWithoutLock);
            assert!(!mutant.is_in(&lock(Backend::EtcdLockApi, WaitPolicy::Spin)));
        }
        let queue = lock(Backend::Redis, WaitPolicy::Queue);
        assert!(!Mutant::ReleaseWithoutCompare.is_in(&queue));
        assert!(!Mutant::EnterWithoutLock.is_in(&queue));
        assert!(Mutant::RenewRecreates.is_in(&queue));
    }
}
