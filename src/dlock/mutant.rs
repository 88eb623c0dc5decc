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
}

impl Mutant {
    pub const ALL: [Mutant; 5] = [
        Mutant::TokenBeforeGrant,
        Mutant::WriteBackUnconditional,
        Mutant::ReleaseWithoutCompare,
        Mutant::RenewRecreates,
        Mutant::ReuseNonce,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Mutant::TokenBeforeGrant => "lock-takes-token-before-grant",
            Mutant::WriteBackUnconditional => "lock-writes-back-unconditionally",
            Mutant::ReleaseWithoutCompare => "lock-releases-without-compare",
            Mutant::RenewRecreates => "lock-renew-recreates",
            Mutant::ReuseNonce => "lock-reuses-nonce",
        }
    }

    /// Whether this lock has the place where the mistake is made. Elsewhere it
    /// would change nothing, and prove nothing.
    pub fn is_in(self, lock: &LockOptions) -> bool {
        let without_line = lock.backend == Backend::Redis && lock.wait != WaitPolicy::Queue;
        let compares = lock.release == ReleaseStyle::CompareAndDelete;
        let redlock = matches!(
            lock.backend,
            Backend::Redlock | Backend::RedlockUnsafeTokens
        );
        match self {
            Mutant::TokenBeforeGrant => without_line,
            Mutant::WriteBackUnconditional => lock.backend == Backend::Redlock,
            Mutant::ReleaseWithoutCompare => compares && (without_line || redlock),
            Mutant::RenewRecreates => lock.backend == Backend::Redis || redlock,
            Mutant::ReuseNonce => redlock,
        }
    }

    /// The script that the mistake is in, what stands there, and what the
    /// mutant has instead.
    fn edit(self) -> Option<[&'static str; 3]> {
        match self {
            Mutant::WriteBackUnconditional => Some([
                include_str!("redlock/scripts/write_back.lua"),
                "redis.call('GET', KEYS[1]) ~= ARGV[1]",
                "false",
            ]),
            Mutant::ReleaseWithoutCompare => Some([
                include_str!("redis/scripts/release.lua"),
                "holder ~= ARGV[1]",
                "false",
            ]),
            Mutant::RenewRecreates => Some([
                include_str!("redis/scripts/renew.lua"),
                "return 0 -- expired",
                "redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) return 1",
            ]),
            Mutant::TokenBeforeGrant | Mutant::ReuseNonce => None,
        }
    }
}

/// The script as it is, or as the mutant has it.
pub(super) fn bend(mutant: Option<Mutant>, script: &'static str) -> Cow<'static, str> {
    match mutant.and_then(Mutant::edit) {
        Some([bent, sound, wrong]) if bent == script => script.replace(sound, wrong).into(),
        _ => script.into(),
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
    fn every_edit_changes_one_place_of_one_script() {
        for [script, sound, _] in Mutant::ALL.into_iter().filter_map(Mutant::edit) {
            assert_eq!(script.matches(sound).count(), 1, "{sound}");
        }
        let [release, ..] = Mutant::ReleaseWithoutCompare.edit().unwrap();
        let [renew, ..] = Mutant::RenewRecreates.edit().unwrap();
        assert_ne!(bend(Some(Mutant::RenewRecreates), renew), renew);
        assert_eq!(bend(Some(Mutant::RenewRecreates), release), release);
        assert_eq!(bend(None, renew), renew);
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
            assert!(!mutant.is_in(&lock(Backend::Etcd, WaitPolicy::Spin)));
        }
        let queue = lock(Backend::Redis, WaitPolicy::Queue);
        assert!(!Mutant::ReleaseWithoutCompare.is_in(&queue));
        assert!(Mutant::RenewRecreates.is_in(&queue));
    }
}
