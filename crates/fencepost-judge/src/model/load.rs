//! The results of load on locks.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The results of a load; of one that was cut short, the results so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncontended: Option<Uncontended>,
    /// One for each number of contenders, in the order of the plan.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ContendStep>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keyspace: Option<KeyspaceRecord>,
    /// The reason why it did not run to its end, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

/// The cost of a lock that nobody else wants, beside the two cheapest writes of its service.
/// Both were measured in turns, by one client that does nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Uncontended {
    /// The time of an acquire and its release together.
    pub lock: Latency,
    /// The time of both writes together.
    pub floor: Latency,
    /// The two writes, in words.
    pub writes: String,
}

impl Uncontended {
    /// Returns how many times the floor a lock costs, by the medians; None if one of them was not
    /// measured.
    pub fn ratio(&self) -> Option<f64> {
        let [lock, floor] = [self.lock.p50_us, self.floor.p50_us];
        (lock > 0 && floor > 0).then(|| lock as f64 / floor as f64)
    }
}

/// The measurements for one number of contenders.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContendStep {
    pub contenders: u32,
    /// `open` or `closed`.
    pub model: String,
    /// Arrivals per second, if they were offered at a rate.
    pub offered_per_s: Option<f64>,
    /// The time from the first arrival to the end of the step.
    pub lasted_ms: u64,

    pub arrivals: u64,
    /// Arrivals for which a contender asked the lock servers: those that gave up in the
    /// backlog never did.
    #[serde(default)]
    pub asked: u64,
    /// Arrivals that found the backlog full.
    pub turned_away: u64,
    pub acquisitions: u64,
    pub timeouts: u64,
    /// Arrivals that were neither granted nor timed out when the step ended.
    pub still_waiting: u64,
    /// The errors by their text, and how often each came.
    pub errors: BTreeMap<String, u64>,
    /// Tries to acquire; more than one per arrival are retries. A wait at the server or
    /// for its message (`notify`, `queue`, etcd) is one try, however long.
    pub attempts: u64,
    /// All requests that were sent to the lock servers.
    pub commands: u64,

    /// The time from the intended arrival to the grant.
    pub acquire: Latency,
    /// The time from a contender's request to the grant, without the backlog.
    pub ask: Latency,
    /// The time from a grant to the answered release.
    pub held: Latency,
    /// The parts of a hold: the write to the resource, and the release.
    pub write: Latency,
    pub release: Latency,
    /// The time from one holder's release being sent to the next one's grant, of the same
    /// key and while somebody waited.
    pub hand_off: Latency,

    /// Grants per second that went to another owner than the one before.
    pub hand_offs_per_s: f64,
    pub throughput_per_s: f64,
    /// 1 / (grant to release + release to next grant), times the keys; `None` with more
    /// keys than contenders can fill.
    pub ceiling_per_s: Option<f64>,
    /// The limit of the throughput, in words.
    pub bound_by: String,
    pub queue: Vec<Queued>,
    pub fairness: Fairness,
    pub generator: Generator,
}

impl ContendStep {
    pub fn retries_per_acquisition(&self) -> f64 {
        self.attempts.saturating_sub(self.asked) as f64 / self.acquisitions.max(1) as f64
    }

    pub fn commands_per_acquisition(&self) -> f64 {
        self.commands as f64 / self.acquisitions.max(1) as f64
    }
}

/// The number of contenders that wanted a lock at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub at_ms: u64,
    /// Contenders that have asked and hold nothing yet.
    pub waiting: u64,
    /// Arrivals for which no contender was free.
    pub backlog: u64,
}

/// The cost of generating the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// The share of one core: user and system time of this process.
    pub cpu_share: f64,
    /// The time from when an arrival was due to when it was made; in a closed model,
    /// where none is due, from when a task should have been woken to when it was.
    pub lag: Latency,
    /// The peak of this process during the step; judging comes after it.
    pub peak_memory_mib: u64,
    /// Set if the measurement shows the generator, and not the lock.
    pub bottleneck: Option<String>,
}

/// The result of one arrival; a row of `arrivals.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalRow {
    /// The number of contenders of its step.
    pub step: u32,
    /// By the clock of all events.
    pub intended_ns: u64,
    pub asked_ns: Option<u64>,
    pub granted_ns: Option<u64>,
    /// The answered release if it was granted, else the end of waiting.
    pub ended_ns: u64,
    pub contender: Option<String>,
    pub key: String,
    pub token: Option<u64>,
    pub end: ArrivalEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalEnd {
    Granted,
    TimedOut,
    TurnedAway,
    StillWaiting,
    Failed,
}

/// Arrival order against acquisition order, of those that got the lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// The fraction of grants that went to somebody while another waited who had arrived
    /// earlier.
    pub out_of_order: f64,
    /// The number of later arrivals that went first, over all that were granted.
    pub mean_overtakes: f64,
    pub max_overtakes: u64,
    /// Jain's index over the grants of each contender: 1 when all got the same number,
    /// 1/n when one got all. Contenders that never arrived are left out.
    pub jain: f64,
    /// The longest wait, whether granted, timed out or still waiting at the end.
    pub worst_wait_us: u64,
    /// Arrivals that were overtaken and got nothing: timed out or still waiting at the
    /// end, although a later arrival was granted the same key.
    pub starved: u64,
}

/// A distribution of durations, in microseconds. All fields are zero if nothing was
/// measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub count: u64,
    pub mean_us: f64,
    pub p50_us: u64,
    pub p90_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyspaceRecord {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisKeyspace>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etcd: Option<EtcdGrowth>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RedisKeyspace {
    pub keys: u64,
    pub ttl_ms: u64,
    pub made_in_ms: u64,
    pub samples: Vec<KeyspaceSample>,
    /// Single figures by name, with the unit at the end of the name.
    pub figures: BTreeMap<String, f64>,
}

/// A Redis at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyspaceSample {
    /// The time since the first key was made.
    pub at_ms: u64,
    /// `filling`, `alive`, `expiring`, `scanned` …
    pub phase: String,
    pub used_memory: u64,
    pub used_memory_rss: u64,
    /// Keys that the server has, including expired ones.
    pub present: u64,
    /// Keys that have not expired yet, calculated from when they were made.
    pub alive: u64,
    /// Keys expired since the start: in total, and only by the server's own cycle.
    pub expired: u64,
    pub expired_active: u64,
    /// The server's own estimate of the share of keys that are expired and still there.
    pub expired_stale_share: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EtcdGrowth {
    pub leases: u64,
    pub ttl_ms: u64,
    pub samples: Vec<EtcdSample>,
    pub figures: BTreeMap<String, f64>,
    /// The law of growth in words, and its extrapolation to ten million.
    pub extrapolation: String,
}

/// An etcd at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EtcdSample {
    pub at_ms: u64,
    pub phase: String,
    pub leases: u64,
    pub granted_per_s: f64,
    pub revision: i64,
    pub db_size: i64,
    pub db_size_in_use: i64,
    pub resident_memory: u64,
}
