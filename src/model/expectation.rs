use super::{Counts, DurationRange, Trigger, ViolationKind};
use std::collections::BTreeMap;
use std::fmt;

/// `2`, `1..`, `..3` or `1..3` (both ends included).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountRange {
    pub min: u64,
    pub max: Option<u64>,
}

impl CountRange {
    pub fn exactly(n: u64) -> CountRange {
        CountRange {
            min: n,
            max: Some(n),
        }
    }

    pub fn contains(&self, n: u64) -> bool {
        n >= self.min && self.max.is_none_or(|max| n <= max)
    }

    pub fn parse(text: &str) -> Option<CountRange> {
        let number = |part: &str| part.trim().parse::<u64>().ok();
        let Some((low, high)) = text.split_once("..") else {
            return number(text).map(CountRange::exactly);
        };
        let min = if low.trim().is_empty() {
            0
        } else {
            number(low)?
        };
        let max = if high.trim().is_empty() {
            None
        } else {
            Some(number(high)?)
        };
        let both_open = low.trim().is_empty() && high.trim().is_empty();
        (!both_open && max.is_none_or(|max| min <= max)).then_some(CountRange { min, max })
    }
}

impl fmt::Display for CountRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, Some(max)) if min == max => write!(f, "{min}"),
            (0, Some(max)) => write!(f, "..{max}"),
            (min, Some(max)) => write!(f, "{min}..{max}"),
            (min, None) => write!(f, "{min}.."),
        }
    }
}

/// What can be counted in a case. The one list of names: reading, the schema,
/// plans and verdicts all go by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// Distinct workers with an accepted write on the busiest key.
    AcceptedWriters,
    AcceptedWrites,
    /// 409s for a token lower than one the resource had seen.
    StaleRejections,
    /// A current holder that was refused.
    RightfulRejections,
    /// Pairs of holds that certainly overlapped.
    Overlaps,
    /// Releases that freed somebody else's lock.
    ForeignReleases,
    /// Times that a worker learned that its lease is gone.
    LostLeases,
    /// Acquires that gave no usable answer.
    FailedAcquires,
    /// Times that somebody asked for a key while it was certainly held.
    Contended,
}

impl Count {
    pub const ALL: [Count; 9] = [
        Count::AcceptedWriters,
        Count::AcceptedWrites,
        Count::StaleRejections,
        Count::RightfulRejections,
        Count::Overlaps,
        Count::ForeignReleases,
        Count::LostLeases,
        Count::FailedAcquires,
        Count::Contended,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Count::AcceptedWriters => "accepted_writers",
            Count::AcceptedWrites => "accepted_writes",
            Count::StaleRejections => "stale_rejections",
            Count::RightfulRejections => "rightful_rejections",
            Count::Overlaps => "overlaps",
            Count::ForeignReleases => "foreign_releases",
            Count::LostLeases => "lost_leases",
            Count::FailedAcquires => "failed_acquires",
            Count::Contended => "contended",
        }
    }

    pub fn of(self, counts: &Counts) -> u64 {
        match self {
            Count::AcceptedWriters => counts.accepted_writers,
            Count::AcceptedWrites => counts.accepted_writes,
            Count::StaleRejections => counts.stale_rejections,
            Count::RightfulRejections => counts.rightful_rejections,
            Count::Overlaps => counts.definite_overlaps,
            Count::ForeignReleases => counts.foreign_releases,
            Count::LostLeases => counts.lost_leases,
            Count::FailedAcquires => counts.failed_acquires,
            Count::Contended => counts.contended,
        }
    }
}

/// What can be measured in a case, as a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// The longest that somebody waited for a key that nobody held any more.
    Blocked,
    /// The longest time without an accepted write.
    Quiet,
    /// The longest that a worker went on claiming a hold that was over.
    Noticed,
    /// The longest from the end of a fault to the next grant of a key that somebody waited for.
    Recovered,
}

impl Measure {
    pub const ALL: [Measure; 4] = [
        Measure::Blocked,
        Measure::Quiet,
        Measure::Noticed,
        Measure::Recovered,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Measure::Blocked => "blocked",
            Measure::Quiet => "quiet",
            Measure::Noticed => "noticed",
            Measure::Recovered => "recovered",
        }
    }
}

/// What a case must show. What is left out is not looked at, except for the
/// promises of the lock and of the resource: a break of those that is not
/// expected by name is never as expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// All kinds together.
    pub violations: Option<CountRange>,
    /// Kind by kind. Where any kind is named, the kinds that are not must be absent.
    pub violations_by_kind: BTreeMap<ViolationKind, CountRange>,
    /// Breaks that a proven fault excuses, all kinds together.
    pub excused: Option<CountRange>,
    /// The same kind by kind. Where any kind is named, the kinds that are not must be absent.
    pub excused_by_kind: BTreeMap<ViolationKind, CountRange>,
    pub counts: BTreeMap<Count, CountRange>,
    pub measures: BTreeMap<Measure, DurationRange>,
    /// Events that came, one after the other; none where that is not looked at.
    pub order: Vec<Trigger>,
}

impl Expectations {
    pub const VIOLATIONS: &str = "violations";
    pub const EXCUSED: &str = "excused";
    pub const ORDER: &str = "order";

    /// The order as a person writes it: `a.paused, b.acquired`.
    pub fn order_in_words(&self) -> String {
        let events: Vec<String> = self.order.iter().map(Trigger::to_string).collect();
        events.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_and_print_the_same() {
        for text in ["0", "2", "1..", "..3", "1..3"] {
            assert_eq!(CountRange::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "..", "-1", "3..1", "1...2", "many", "1..x"] {
            assert_eq!(CountRange::parse(text), None, "{text}");
        }
    }
}
