//! The locks that a mutant changes.

use crate::services::{Backend, LockOptions, ReleaseStyle};
use fencing_lock::Mutant;

/// Returns whether this lock has the place where the mistake is made. In other locks the mutant
/// would change nothing, and prove nothing.
pub fn changes(mutant: Mutant, lock: &LockOptions) -> bool {
    let redis = matches!(lock.backend, Backend::Redis | Backend::RedisSharded);
    let without_line = redis && !lock.wait.is_in_order();
    let compares = lock.release == ReleaseStyle::CompareAndDelete;
    let redlock = matches!(
        lock.backend,
        Backend::Redlock | Backend::RedlockUnsafeTokens
    );
    match mutant {
        Mutant::TokenBeforeGrant => without_line,
        Mutant::WriteBackUnconditional => lock.backend == Backend::Redlock,
        Mutant::ReleaseWithoutCompare => compares && (without_line || redlock),
        Mutant::RenewRecreates | Mutant::GrantEverybody | Mutant::NeverExpire => redis || redlock,
        Mutant::ReuseNonce => redlock,
        Mutant::EnterWithoutLock => without_line || redlock || lock.backend == Backend::Etcd,
        // Without proposals, the tokens of Redlock would only stay the same.
        Mutant::TokensBackwards => redis || lock.backend == Backend::Redlock,
        Mutant::LateHandOff => redis && lock.wait.is_in_order(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WaitPolicy;

    #[test]
    fn a_mutant_is_only_in_locks_that_it_changes() {
        let lock = |backend, wait| LockOptions {
            backend,
            wait,
            ..LockOptions::default()
        };
        for &mutant in Mutant::ALL {
            let redis = changes(mutant, &lock(Backend::Redis, WaitPolicy::Spin));
            let queue = changes(mutant, &lock(Backend::Redis, WaitPolicy::Queue));
            let redlock = changes(mutant, &lock(Backend::Redlock, WaitPolicy::Spin));
            assert!(redis || queue || redlock, "{mutant}");
            let etcd = changes(mutant, &lock(Backend::Etcd, WaitPolicy::Spin));
            assert_eq!(etcd, mutant == Mutant::EnterWithoutLock);
            assert!(!changes(
                mutant,
                &lock(Backend::EtcdLockApi, WaitPolicy::Spin)
            ));
        }
        let queue = lock(Backend::Redis, WaitPolicy::Queue);
        assert!(!changes(Mutant::ReleaseWithoutCompare, &queue));
        assert!(!changes(Mutant::EnterWithoutLock, &queue));
        assert!(changes(Mutant::RenewRecreates, &queue));
    }
}
