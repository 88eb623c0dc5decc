use serde::{Deserialize, Serialize};

/// Arrival order against acquisition order, of those who got the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Of the grants, the fraction that went to somebody while another waited
    /// who had arrived earlier.
    pub out_of_order: f64,
    /// How many later arrivals went first, of all that were granted.
    pub mean_overtakes: f64,
    pub max_overtakes: u64,
    /// Jain's index over the grants of each contender: 1 when all got as many,
    /// 1/n when one got all. Contenders that never arrived are left out.
    pub jain: f64,
    /// The longest that anybody waited, whether granted, timed out or still waiting
    /// at the end.
    pub worst_wait_us: u64,
    /// Arrivals that were overtaken and got nothing: timed out or still waiting at the
    /// end, although somebody who came later was granted the same key.
    pub starved: u64,
}
