use crate::model::{LockServers, format_duration};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct KeyspacePlan {
    /// Locks of a Redis, or leases with a key each of an etcd.
    pub keys: u64,
    /// How long each of them lives.
    pub ttl: Duration,
    /// A fence counter beside each lock, which lives for so long; without it there are none.
    pub counters: Option<Duration>,
    /// Redis: `active-expire-effort`, 1 to 10; without it, as the server has it. It is put
    /// back at the end.
    pub effort: Option<u32>,
    /// Redis: once every lock is dead, touch every key with a SCAN, which reclaims lazily.
    pub scan: bool,
    /// Watch for so long after the last key was made; without it, until nothing dead is left.
    pub watch: Option<Duration>,
}

impl KeyspacePlan {
    /// What cannot be done, in words, each with the field that is wrong.
    pub fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut mistakes = Vec::new();
        if self.keys == 0 {
            mistakes.push(("keys", "at least one key is needed".to_owned()));
        }
        let lives = [("ttl", Some(self.ttl)), ("counters", self.counters)];
        for (field, life) in lives {
            let Some(life) = life else { continue };
            if life < Duration::from_millis(1) || life > LONGEST_LIFE {
                let text = format!("from 1ms to 2880m, not {}", format_duration(life));
                mistakes.push((field, text));
            }
        }
        if let Some(effort) = self.effort.filter(|effort| !(1..=10).contains(effort)) {
            mistakes.push(("effort", format!("from 1 to 10, not {effort}")));
        }
        mistakes
    }

    /// The same, and what these servers cannot do.
    pub fn mistakes_at(&self, servers: LockServers) -> Vec<(&'static str, String)> {
        let mut mistakes = self.mistakes();
        match servers {
            LockServers::OneRedis => {}
            LockServers::RedisNodes => {
                let text = "one Redis is measured at a time: name a single one";
                mistakes.push(("servers", text.to_owned()));
            }
            LockServers::Etcd => {
                let is_whole = self.ttl.subsec_nanos() == 0;
                if self.ttl > Duration::ZERO && (self.ttl < LEAST_LEASE || !is_whole) {
                    let ttl = format_duration(self.ttl);
                    let text = format!("etcd grants whole seconds from 2s on, not {ttl}");
                    mistakes.push(("ttl", text));
                }
                let only_redis = [
                    ("counters", self.counters.is_some()),
                    ("effort", self.effort.is_some()),
                    ("scan", self.scan),
                ];
                for (field, is_given) in only_redis {
                    if is_given {
                        mistakes.push((field, "only a Redis has this, not etcd".to_owned()));
                    }
                }
            }
        }
        mistakes
    }
}

/// As long as an idle counter is kept.
const LONGEST_LIFE: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// The least that an etcd grants with its own defaults.
const LEAST_LEASE: Duration = Duration::from_secs(2);

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
    /// Single figures by name, with their unit at its end.
    pub figures: BTreeMap<String, f64>,
}

/// A Redis at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KeyspaceSample {
    /// Since the first key was made.
    pub at_ms: u64,
    /// Filling, alive, expiring, scanned …
    pub phase: String,
    pub used_memory: u64,
    pub used_memory_rss: u64,
    /// Keys that the server has, dead ones included.
    pub present: u64,
    /// Keys that are not over yet, by what was made and when.
    pub alive: u64,
    /// Since the start, together and by the server's own cycle alone.
    pub expired: u64,
    pub expired_active: u64,
    /// What the server itself thinks is dead and still there.
    pub expired_stale_share: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EtcdGrowth {
    pub leases: u64,
    pub ttl_ms: u64,
    pub samples: Vec<EtcdSample>,
    pub figures: BTreeMap<String, f64>,
    /// The law of growth in words, and what follows for ten million; an extrapolation.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> KeyspacePlan {
        KeyspacePlan {
            keys: 1_000,
            ttl: Duration::from_secs(2),
            counters: None,
            effort: None,
            scan: false,
            watch: None,
        }
    }

    fn fields(mistakes: Vec<(&'static str, String)>) -> Vec<&'static str> {
        mistakes.into_iter().map(|(field, _)| field).collect()
    }

    #[test]
    fn every_mistake_is_told_at_once() {
        assert_eq!(plan().mistakes(), []);
        let bad = KeyspacePlan {
            keys: 0,
            ttl: Duration::ZERO,
            counters: Some(Duration::ZERO),
            effort: Some(11),
            ..plan()
        };
        assert_eq!(
            fields(bad.mistakes()),
            ["keys", "ttl", "counters", "effort"]
        );
    }

    #[test]
    fn etcd_grants_whole_seconds_and_not_too_few() {
        let of_ms = |ms| KeyspacePlan {
            ttl: Duration::from_millis(ms),
            ..plan()
        };
        for (ms, redis, etcd) in [(2_000, 0, 0), (1_000, 0, 1), (2_500, 0, 1), (0, 1, 1)] {
            let plan = of_ms(ms);
            assert_eq!(plan.mistakes_at(LockServers::OneRedis).len(), redis, "{ms}");
            assert_eq!(plan.mistakes_at(LockServers::Etcd).len(), etcd, "{ms}");
        }
        let redis_only = KeyspacePlan {
            counters: Some(Duration::from_secs(9)),
            effort: Some(1),
            scan: true,
            ..plan()
        };
        let mistakes = redis_only.mistakes_at(LockServers::Etcd);
        assert_eq!(fields(mistakes), ["counters", "effort", "scan"]);
    }
}
