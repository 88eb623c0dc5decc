use super::{Fairness, Latency};
use crate::model::{LockOptions, Span};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

const MOST_CONTENDERS: u32 = 10_000;
const MOST_CLIENTS: u32 = 1_000;
const FASTEST_PER_S: f64 = 1_000_000.0;
const LONGEST_BACKLOG: u32 = 1_000_000;
const SHORTEST_TTL: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone, Debug, PartialEq)]
pub struct ContendPlan {
    pub lock: LockOptions,
    pub ttl: Duration,
    /// One step for each: how many may want a lock at the same time.
    pub contenders: Vec<u32>,
    /// Processes that the contenders are spread over, each with connections or a
    /// session of its own, as the hosts of a fleet have.
    pub clients: u32,
    /// 1 is one hot key.
    pub keys: u64,
    pub arrivals: Arrivals,
    /// From the grant to the write; within bounds, drawn by the seed for each hold.
    pub work: Span,
    /// From its arrival on, somebody waits for at most so long.
    pub timeout: Duration,
    /// Of each step.
    pub duration: Duration,
}

impl ContendPlan {
    /// At the end of a step: after its work, a holder writes and releases, and both
    /// have time limits.
    pub const TO_LET_GO: Duration = Duration::from_secs(40);

    /// What cannot be done, in words, each with the field that is wrong.
    pub fn mistakes(&self) -> Vec<(&'static str, String)> {
        let mut found = self.mistakes_of_contenders();
        let mut add = |field, is_wrong: bool, words: &str| {
            if is_wrong {
                found.push((field, words.to_owned()));
            }
        };
        if let Arrivals::Open {
            per_second,
            backlog,
        } = self.arrivals
        {
            let can_be = |rate: f64| rate.is_finite() && rate > 0.0 && rate <= FASTEST_PER_S;
            add(
                "rate",
                !per_second.is_none_or(can_be),
                "a rate is above 0 and at most 1000000 a second",
            );
            add(
                "backlog",
                backlog > LONGEST_BACKLOG,
                "a backlog has at most 1000000 places (0: whoever finds nobody free is turned away)",
            );
        }
        add(
            "keys",
            self.keys == 0,
            "at least one key is needed: 1 is one hot key",
        );
        add(
            "clients",
            !(1..=MOST_CLIENTS).contains(&self.clients),
            "from 1 to 1000 clients can be had, each with its own connections",
        );
        add(
            "work",
            self.work.to > LONGEST,
            "work lasts for a day at most",
        );
        let can_last = |span: Duration| span > Duration::ZERO && span <= LONGEST;
        add(
            "timeout",
            !can_last(self.timeout),
            "a timeout is above 0 and at most a day: with 0 nobody would ever wait",
        );
        add(
            "duration",
            !can_last(self.duration),
            "a step lasts for longer than 0 and for a day at most",
        );
        let can_live = |ttl| (SHORTEST_TTL..=LONGEST).contains(&ttl);
        add("ttl", !can_live(self.ttl), "a TTL is from 1ms to a day");
        if can_live(self.ttl)
            && let Some(reason) = self.lock.backend.ttl_conflict(self.ttl)
        {
            add("ttl", true, reason);
        }
        found.extend(self.lock.conflict());
        found
    }

    fn mistakes_of_contenders(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut add = |words: String| found.push(("contenders", words));
        if self.contenders.is_empty() {
            add("at least one number of contenders is needed, such as 50,200,1000".to_owned());
        }
        for (place, &contenders) in self.contenders.iter().enumerate() {
            if !(1..=MOST_CONTENDERS).contains(&contenders) {
                add(format!(
                    "{contenders} contenders cannot be had: 1 to 10000 can"
                ));
            } else if self.contenders[..place].contains(&contenders) {
                // Keys and names are those of the number.
                add(format!(
                    "{contenders} is there twice, and each number is one step"
                ));
            }
        }
        found
    }

    /// Arrivals a second in a step with so many contenders; `None` in a closed model.
    pub fn offered_per_s(&self, contenders: u32) -> Option<f64> {
        match self.arrivals {
            Arrivals::Open { per_second, .. } => {
                Some(per_second.unwrap_or_else(|| f64::from(contenders)))
            }
            Arrivals::Closed => None,
        }
    }
}

/// What makes contenders ask.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Arrivals at a fixed rate, whatever becomes of those before. Who finds no
    /// contender free waits in a backlog; who finds that full is turned away.
    Open {
        /// All contenders together; without it, one a second for each of them.
        per_second: Option<f64>,
        backlog: u32,
    },
    /// Everybody asks again as soon as they are done: a queue that cannot grow.
    Closed,
}

/// One number of contenders, measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContendStep {
    pub contenders: u32,
    /// `open` or `closed`.
    pub model: String,
    /// Arrivals a second, where they were offered at a rate.
    pub offered_per_s: Option<f64>,
    /// From the first arrival to the end of the step.
    pub lasted_ms: u64,

    pub arrivals: u64,
    /// Arrivals for which a contender asked the lock servers: those who gave up in the
    /// backlog never did.
    #[serde(default)]
    pub asked: u64,
    /// Arrivals that found the backlog full.
    pub turned_away: u64,
    pub acquisitions: u64,
    pub timeouts: u64,
    /// Neither granted nor timed out when the step ended.
    pub still_waiting: u64,
    /// What went wrong, by its words, and how often.
    pub errors: BTreeMap<String, u64>,
    /// Tries to acquire; more than one of an arrival are retries. A wait at the server
    /// or for its word (`notify`, `queue`, etcd) is one, however long.
    pub attempts: u64,
    /// Requests that were sent to the lock servers, for everything.
    pub commands: u64,

    /// From the intended arrival to the grant.
    pub acquire: Latency,
    /// From when a contender asked to the grant: what is left without the backlog.
    pub ask: Latency,
    /// From a grant to the answered release.
    pub held: Latency,
    /// The parts of a hold: the write to the resource, and the release.
    pub write: Latency,
    pub release: Latency,
    /// From one holder's release being sent to the next one's grant, of the same key
    /// and while somebody waited.
    pub hand_off: Latency,

    /// Grants that went to another owner than the one before, a second.
    pub hand_offs_per_s: f64,
    pub throughput_per_s: f64,
    /// 1 / (grant to release + release to next grant), times the keys; `None` with more
    /// keys than contenders can fill.
    pub ceiling_per_s: Option<f64>,
    /// What bounds the throughput, in words.
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

/// How many wanted a lock at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Queued {
    pub at_ms: u64,
    /// Contenders that have asked and hold nothing yet.
    pub waiting: u64,
    /// Arrivals for which no contender was free.
    pub backlog: u64,
}

/// What making the load cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Of one core: user and system time of this process.
    pub cpu_share: f64,
    /// From when an arrival was due to when it was made; in a closed model, where
    /// none is due, from when a task should have been woken to when it was.
    pub lag: Latency,
    /// Of this process, while the step lasted; judging comes after it.
    pub peak_memory_mib: u64,
    /// Set where the generator, and not the lock, is what was measured.
    pub bottleneck: Option<String>,
}

/// How one arrival came out; a row of `arrivals.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalRow {
    /// The number of contenders of its step.
    pub step: u32,
    /// On the clock of all events.
    pub intended_ns: u64,
    pub asked_ns: Option<u64>,
    pub granted_ns: Option<u64>,
    /// The answered release of who was granted it, else the end of waiting.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Backend, WaitPolicy};

    fn good() -> ContendPlan {
        ContendPlan {
            lock: LockOptions::default(),
            ttl: Duration::from_secs(10),
            contenders: vec![50, 200, 1_000],
            clients: 12,
            keys: 1,
            arrivals: Arrivals::Open {
                per_second: None,
                backlog: 0,
            },
            work: Span::default(),
            timeout: Duration::from_secs(10),
            duration: Duration::from_secs(60),
        }
    }

    fn open(per_second: f64) -> Arrivals {
        Arrivals::Open {
            per_second: Some(per_second),
            backlog: 10,
        }
    }

    #[test]
    fn what_can_be_done_is_no_mistake() {
        assert_eq!(good().mistakes(), []);
        let closed = ContendPlan {
            arrivals: Arrivals::Closed,
            contenders: vec![10_000],
            ..good()
        };
        assert_eq!(closed.mistakes(), []);
        assert_eq!(closed.offered_per_s(50), None);
        assert_eq!(good().offered_per_s(50), Some(50.0));
    }

    #[test]
    fn everything_that_is_wrong_is_told_at_once() {
        let plan = ContendPlan {
            lock: LockOptions {
                backend: Backend::Etcd,
                wait: WaitPolicy::Queue,
                ..LockOptions::default()
            },
            ttl: Duration::from_millis(1_500),
            contenders: vec![0, 50, 50, 10_001],
            clients: 0,
            keys: 0,
            arrivals: open(0.0),
            work: Span::exactly(2 * LONGEST),
            timeout: Duration::ZERO,
            duration: 2 * LONGEST,
        };
        let fields: Vec<_> = plan.mistakes().iter().map(|(field, _)| *field).collect();
        let expected = [
            "contenders",
            "contenders",
            "contenders",
            "rate",
            "keys",
            "clients",
            "work",
            "timeout",
            "duration",
            "ttl",
            "wait",
        ];
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_rate_is_a_number_above_nothing() {
        for (rate, is_good) in [
            (0.5, true),
            (1_000_000.0, true),
            (1_000_001.0, false),
            (-1.0, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
        ] {
            let plan = ContendPlan {
                arrivals: open(rate),
                ..good()
            };
            assert_eq!(plan.mistakes().is_empty(), is_good, "{rate}");
        }
        let nobody = ContendPlan {
            contenders: Vec::new(),
            ..good()
        };
        assert!(nobody.mistakes()[0].1.contains("50,200,1000"));
    }
}
