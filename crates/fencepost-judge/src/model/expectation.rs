use super::{Counts, DurationRange, Trigger, ViolationKind, joined};
use std::collections::BTreeMap;
use std::fmt;
use strum::{EnumMessage, IntoStaticStr, VariantArray};

/// A range like `2`, `1..`, `..3` or `1..3` (both ends included).
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

/// Everything that can be counted in a case. This is the only list: parsing, the schema,
/// plans, verdicts and the table in scenarios/README.md all follow it.
#[derive(EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Count {
    /// distinct workers with an accepted write on the busiest key
    AcceptedWriters,
    /// accepted writes
    AcceptedWrites,
    /// writes refused because the resource had seen a higher token, whoever was
    /// right; a refusal for an equal token is not among them
    StaleRejections,
    /// those of all refusals that affected the current holder: counted above as
    /// well, if a higher token was the reason
    RightfulRejections,
    /// pairs of holds that certainly overlapped
    Overlaps,
    /// releases that freed somebody else's lock
    ForeignReleases,
    /// times that a worker learned that its lease is gone (`lost`)
    LostLeases,
    /// acquires without a usable answer (`failed` during `acquire`)
    FailedAcquires,
    /// times that somebody asked for a key while another certainly held it; with
    /// none, the case says nothing about exclusion
    Contended,
}

impl Count {
    pub const ALL: &[Count] = Count::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
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

/// Everything that can be measured in a case, as a duration.
#[derive(EnumMessage, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Measure {
    /// the longest that a key stood blocked
    Blocked,
    /// the longest time without an accepted write
    Quiet,
    /// the longest that a worker went on with a hold after its end
    Noticed,
    /// the longest from the end of a fault to the next grant of a key that was
    /// free then and that somebody waited for
    Recovered,
}

impl Measure {
    pub const ALL: &[Measure] = Measure::VARIANTS;

    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// The results that a case must show. Anything left out is not checked, except for the
/// promises of the lock and of the resource: a break of those that is not expected by
/// name is never as expected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// The count of all kinds together.
    pub violations: Option<CountRange>,
    /// The counts by kind. If any kind is named, the others must be absent.
    pub violations_by_kind: BTreeMap<ViolationKind, CountRange>,
    /// Breaks that a proven fault excuses, all kinds together.
    pub excused: Option<CountRange>,
    /// The same by kind. If any kind is named, the others must be absent.
    pub excused_by_kind: BTreeMap<ViolationKind, CountRange>,
    pub counts: BTreeMap<Count, CountRange>,
    pub measures: BTreeMap<Measure, DurationRange>,
    /// Events that came one after the other; empty if the order is not checked.
    pub order: Vec<Trigger>,
}

impl Expectations {
    pub const VIOLATIONS: &str = "violations";
    pub const EXCUSED: &str = "excused";
    pub const ORDER: &str = "order";

    /// Returns the order as a person writes it: `a.paused, b.acquired`.
    pub fn order_in_words(&self) -> String {
        joined(&self.order, ", ")
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
