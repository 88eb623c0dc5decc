use super::{Env, Lease, LostReason, RenewError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Renews a lease at a third of its TTL or a little sooner, for as long as it
/// is polled, and completes when the lease is lost.
///
/// A renewal that fails is tried again soon: the lease may still be saved before the
/// deadline. The caller polls this beside its work and drops it at the end, so the
/// watchdog cannot outlive the hold. Like every watchdog, it does not run while its
/// process is stopped.
pub async fn keep_renewed(lease: &Lease, mut on_renewed: impl FnMut()) -> LostReason {
    let soon = (lease.ttl() / 20).max(Duration::from_millis(1));
    let mut next = lease.acquired_at() + about_a_third(lease.env(), lease.ttl());
    loop {
        tokio::select! {
            biased;
            reason = lease.lost() => return reason,
            () = sleep_until(next) => {}
        }
        let sent_at = Instant::now();
        next = match lease.renew().await {
            Ok(()) => {
                on_renewed();
                sent_at + about_a_third(lease.env(), lease.ttl())
            }
            Err(RenewError::Lost(reason)) => return reason,
            Err(RenewError::Lock(_)) => Instant::now() + soon,
        };
    }
}

/// Returns when to prolong a TTL: at a third of it or a little sooner. The random part
/// keeps leases that began together from asking at the same time.
pub(super) fn about_a_third(env: &Env, ttl: Duration) -> Duration {
    ttl / 3 * env.draw(85..=100) / 100
}
