use super::{Lease, LostReason, RenewError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Of a third of the TTL.
const JITTER_PERCENT: std::ops::RangeInclusive<u32> = 85..=100;

/// Renews a lease at a third of its TTL or a little sooner, for as long as it
/// is polled, and completes when the lease is lost.
///
/// The random part keeps the watchdogs of many holders from asking in step.
///
/// A renewal that fails is tried again soon: up to the deadline the lease may
/// still be saved. The caller polls this beside its work and drops it at the
/// end, so the watchdog cannot outlive the hold; and like every watchdog, it
/// stands still while its process does.
pub async fn keep_renewed(lease: &Lease, mut on_renewed: impl FnMut()) -> LostReason {
    let third = || lease.ttl() / 3 * fastrand::u32(JITTER_PERCENT) / 100;
    let soon = (lease.ttl() / 20).max(Duration::from_millis(1));
    let mut next = lease.acquired_at() + third();
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
                sent_at + third()
            }
            Err(RenewError::Lost(reason)) => return reason,
            Err(RenewError::Lock(_)) => Instant::now() + soon,
        };
    }
}
