use crate::model::format_duration;
use crate::services::Keyspace;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct KeyspacePlan {
    /// The number of locks in a Redis, or of leases with one key each in an etcd.
    pub keys: u64,
    pub ttl: Duration,
    /// How long the fence counter beside each lock lives; without it there are no counters.
    pub counters: Option<Duration>,
    /// Redis: `active-expire-effort`, 1 to 10; without it, the server's value stays. It is
    /// restored at the end.
    pub effort: Option<u32>,
    /// Redis: once every lock has expired, touch every key with a SCAN, which reclaims lazily.
    pub scan: bool,
    /// How long to watch after the last key was made; without it, until no expired key is left.
    pub watch: Option<Duration>,
}

impl KeyspacePlan {
    /// Returns what is wrong with the plan, each with the field.
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

    /// Returns the same, and what cannot be measured at this kind of server.
    pub fn mistakes_at(&self, keyspace: Keyspace) -> Vec<(&'static str, String)> {
        let mut mistakes = self.mistakes();
        match keyspace {
            Keyspace::Redis => {}
            Keyspace::Etcd => {
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

/// The longest TTL: as long as an idle counter is kept.
const LONGEST_LIFE: Duration = Duration::from_secs(2 * 24 * 60 * 60);
/// The shortest lease that etcd grants with its own defaults.
const LEAST_LEASE: Duration = Duration::from_secs(2);

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
        let expected = ["keys", "ttl", "counters", "effort"];
        assert_eq!(fields(bad.mistakes()), expected);
    }

    #[test]
    fn etcd_grants_whole_seconds_and_not_too_few() {
        let of_ms = |ms| KeyspacePlan {
            ttl: Duration::from_millis(ms),
            ..plan()
        };
        for (ms, redis, etcd) in [(2_000, 0, 0), (1_000, 0, 1), (2_500, 0, 1), (0, 1, 1)] {
            let plan = of_ms(ms);
            assert_eq!(plan.mistakes_at(Keyspace::Redis).len(), redis, "{ms}");
            assert_eq!(plan.mistakes_at(Keyspace::Etcd).len(), etcd, "{ms}");
        }
        let redis_only = KeyspacePlan {
            counters: Some(Duration::from_secs(9)),
            effort: Some(1),
            scan: true,
            ..plan()
        };
        let mistakes = redis_only.mistakes_at(Keyspace::Etcd);
        assert_eq!(fields(mistakes), ["counters", "effort", "scan"]);
    }
}
