//! What the order of the grants of one key says.

use crate::numbers::percentile;
use std::time::{Duration, Instant};

/// One grant; a list of them is in the order in which the lock was held.
pub struct GrantRow {
    pub contender: usize,
    /// The place in the order in which contenders began to wait.
    pub arrival: u64,
    pub waited: Duration,
    pub at: Instant,
}

/// Of the grants in a stretch of time.
#[derive(Clone, Debug)]
pub struct Order {
    pub grants: usize,
    /// To another contender than the one before: a lock that its holder takes
    /// again and again makes many grants and few hand-offs.
    pub handoffs_per_s: f64,
    /// In percent, like the next.
    pub own_again: f64,
    /// Grants to somebody while another had begun to wait before.
    pub out_of_order: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
}

impl Order {
    /// `rows` go on behind `to`, until everybody who waited was served.
    pub fn of(rows: &[GrantRow], from: Instant, to: Instant) -> Order {
        let mut handoffs = 0;
        let mut overtaking = 0;
        let mut waits_ms = Vec::new();
        let mut earliest_later = u64::MAX;
        for (number, row) in rows.iter().enumerate().rev() {
            if (from..to).contains(&row.at) {
                let before = number.checked_sub(1).map(|before| rows[before].contender);
                handoffs += usize::from(before != Some(row.contender));
                overtaking += usize::from(row.arrival > earliest_later);
                waits_ms.push(row.waited.as_secs_f64() * 1e3);
            }
            earliest_later = earliest_later.min(row.arrival);
        }
        let grants = waits_ms.len();
        let percent = |part: usize| 100.0 * part as f64 / grants as f64;
        Order {
            grants,
            handoffs_per_s: handoffs as f64 / (to - from).as_secs_f64(),
            own_again: percent(grants - handoffs),
            out_of_order: percent(overtaking),
            p50_ms: percentile(&waits_ms, 0.5),
            p99_ms: percentile(&waits_ms, 0.99),
        }
    }
}
