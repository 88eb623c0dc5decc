use super::{format_duration, parse_duration};
use std::fmt;
use std::time::Duration;

/// A range like `8s..`, `..5s` or `1s..4s` (both ends included). One exact duration is
/// refused: no run would ever keep it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DurationRange {
    pub min: Duration,
    pub max: Option<Duration>,
}

impl DurationRange {
    pub fn contains(&self, duration: Duration) -> bool {
        duration >= self.min && self.max.is_none_or(|max| duration <= max)
    }

    pub fn parse(text: &str) -> Option<DurationRange> {
        let (low, high) = text.split_once("..")?;
        let min = match low {
            "" => Duration::ZERO,
            low => parse_duration(low)?,
        };
        let max = match high {
            "" => None,
            high => Some(parse_duration(high)?),
        };
        let both_open = low.is_empty() && high.is_empty();
        (!both_open && max.is_none_or(|max| min <= max)).then_some(DurationRange { min, max })
    }
}

impl fmt::Display for DurationRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.min.is_zero() {
            f.write_str(&format_duration(self.min))?;
        }
        f.write_str("..")?;
        match self.max {
            Some(max) => f.write_str(&format_duration(max)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_read_and_print_the_same() {
        for text in ["8s..", "..5s", "1s..4s", "500ms..1m"] {
            assert_eq!(DurationRange::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in [
            "", "..", "2s", "4s..1s", "1s...2s", "1..2", "1s..x", "1s ..",
        ] {
            assert_eq!(DurationRange::parse(text), None, "{text}");
        }
    }

    #[test]
    fn both_ends_are_included_and_no_more() {
        let range = DurationRange::parse("1s..4s").unwrap();
        let nano = Duration::from_nanos(1);
        assert!(range.contains(range.min) && range.contains(range.max.unwrap()));
        assert!(!range.contains(range.min - nano));
        assert!(!range.contains(range.max.unwrap() + nano));
    }
}
