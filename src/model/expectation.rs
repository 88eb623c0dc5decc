use super::ViolationKind;
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

/// What a case must show. What is left out is not looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectations {
    /// All kinds together.
    pub violations: Option<CountRange>,
    /// Kind by kind. Where any kind is named, the kinds that are not must be absent.
    pub violations_by_kind: BTreeMap<ViolationKind, CountRange>,
    /// Distinct workers with an accepted write on the busiest key.
    pub accepted_writers: Option<CountRange>,
    pub accepted_writes: Option<CountRange>,
    /// 409s for a token lower than one the resource had seen.
    pub stale_rejections: Option<CountRange>,
    /// A current holder that was refused.
    pub rightful_rejections: Option<CountRange>,
    /// Pairs of holds that certainly overlapped.
    pub overlaps: Option<CountRange>,
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
