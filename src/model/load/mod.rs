//! Load on locks: what is to be done, and what came of it.

mod contend;
mod fairness;
mod keyspace;
mod latency;

pub use contend::{ArrivalEnd, ArrivalRow, Arrivals, ContendPlan, ContendStep, Generator, Queued};
pub use fairness::Fairness;
pub use keyspace::{
    EtcdGrowth, EtcdSample, KeyspacePlan, KeyspaceRecord, KeyspaceSample, RedisKeyspace,
};
pub use latency::Latency;

use serde::{Deserialize, Serialize};

/// What a case of `kind: load` does.
#[derive(Clone, Debug, PartialEq)]
pub enum LoadPlan {
    /// Contenders for one key, or for many.
    Contend(ContendPlan),
    /// A great many short-lived locks, and what they leave behind.
    Keyspace(KeyspacePlan),
}

/// What came of a load; of one that was cut short, so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// One for each number of contenders, in the order of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ContendStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<KeyspaceRecord>,
    /// Why it was not done to the end, where it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}
