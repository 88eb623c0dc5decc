use crate::model::Span;
use crate::services::LockOptions;
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
    /// One step for each number: how many contenders may want a lock at the same time.
    pub contenders: Vec<u32>,
    /// The number of clients that the contenders are spread over. Each has its own connections
    /// or session, as the hosts of a fleet have.
    pub clients: u32,
    /// 1 is one hot key.
    pub keys: u64,
    pub arrivals: Arrivals,
    /// The time from the grant to the write; the seed draws it within these bounds for each hold.
    pub work: Span,
    /// The longest wait, counted from the arrival.
    pub timeout: Duration,
    pub duration: Duration,
    /// Before the steps, one client alone acquires and releases for this long, in turns with the
    /// two cheapest writes of the service.
    pub floor: Option<Duration>,
}

impl ContendPlan {
    /// The time at the end of a step in which a holder writes and releases after its work; both
    /// have time limits.
    pub const TO_LET_GO: Duration = Duration::from_secs(40);

    /// Returns what is wrong with the plan, each with the field.
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
            let words = "a rate is above 0 and at most 1000000 a second";
            add("rate", !per_second.is_none_or(can_be), words);
            let words = "a backlog has at most 1000000 places (0: whoever finds nobody free is turned away)";
            add("backlog", backlog > LONGEST_BACKLOG, words);
        }
        let words = "at least one key is needed: 1 is one hot key";
        add("keys", self.keys == 0, words);
        let can_be_had = (1..=MOST_CLIENTS).contains(&self.clients);
        let words = "from 1 to 1000 clients can be had, each with its own connections";
        add("clients", !can_be_had, words);
        let words = "work lasts for a day at most";
        add("work", self.work.to > LONGEST, words);
        let can_last = |span: Duration| span > Duration::ZERO && span <= LONGEST;
        let words = "a timeout is above 0 and at most a day: with 0 nobody would ever wait";
        add("timeout", !can_last(self.timeout), words);
        let words = "a step lasts for longer than 0 and for a day at most";
        add("duration", !can_last(self.duration), words);
        let words = "the floor is measured for longer than 0 and for a day at most";
        add("floor", !self.floor.is_none_or(can_last), words);
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
                let words = "contenders cannot be had: 1 to 10000 can";
                add(format!("{contenders} {words}"));
            } else if self.contenders[..place].contains(&contenders) {
                // Keys and names contain the number, so it must be unique.
                let words = "is there twice, and each number is one step";
                add(format!("{contenders} {words}"));
            }
        }
        found
    }

    /// Returns the arrivals per second in a step with this many contenders; `None` in a closed
    /// model.
    pub fn offered_per_s(&self, contenders: u32) -> Option<f64> {
        match self.arrivals {
            Arrivals::Open { per_second, .. } => {
                Some(per_second.unwrap_or_else(|| f64::from(contenders)))
            }
            Arrivals::Closed => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Arrivals come at a fixed rate, whatever happens to earlier ones. An arrival that finds
    /// no contender free waits in a backlog; if that is full, it is turned away.
    Open {
        /// The rate of all contenders together; without it, one per second for each of them.
        per_second: Option<f64>,
        backlog: u32,
    },
    /// Contenders ask again as soon as they are done, so the queue cannot grow.
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::WaitPolicy;
    use crate::services::Backend;

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
            floor: Some(Duration::from_secs(3)),
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
            floor: Some(Duration::ZERO),
        };
        let fields: Vec<_> = plan.mistakes().iter().map(|(field, _)| *field).collect();
        let expected = "contenders contenders contenders rate keys clients work timeout duration floor ttl wait";
        assert_eq!(fields.join(" "), expected);
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
