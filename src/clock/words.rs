//! Offsets and rates as a person writes them.

use crate::model::{format_duration, parse_duration};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An offset in nanoseconds, written as `+15s`, `-60s` or `500ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset(pub i64);

/// A rate in millionths, written as `500ppm` or `-200ppm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate(pub i64);

impl FromStr for Offset {
    type Err = String;

    fn from_str(text: &str) -> Result<Offset, String> {
        let (sign, unsigned) = signed(text);
        let duration = parse_duration(unsigned);
        let ns = duration.and_then(|duration| i64::try_from(duration.as_nanos()).ok());
        ns.map(|ns| Offset(sign * ns))
            .ok_or_else(|| "write a number and a unit: +15s, -60s, 500ms, 2m".to_owned())
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Rate, String> {
        let (sign, unsigned) = signed(text);
        let digits = unsigned.strip_suffix("ppm");
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let ppm = digits.and_then(|digits| digits.parse::<i64>().ok());
        ppm.map(|ppm| Rate(sign * ppm))
            .ok_or_else(|| "write a whole number of millionths: 500ppm, -200ppm".to_owned())
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { '-' } else { '+' };
        let duration = Duration::from_nanos(self.0.unsigned_abs());
        write!(f, "{sign}{}", format_duration(duration))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:+}ppm", self.0)
    }
}

fn signed(text: &str) -> (i64, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_and_rates_read_and_print_the_same() {
        for (text, ns) in [
            ("+15s", 15_000_000_000),
            ("-1m", -60_000_000_000),
            ("+250ms", 250_000_000),
            ("+0ms", 0),
        ] {
            assert_eq!(text.parse(), Ok(Offset(ns)));
            assert_eq!(Offset(ns).to_string(), text);
        }
        assert_eq!("15s".parse(), Ok(Offset(15_000_000_000)));
        for (text, ppm) in [("+500ppm", 500), ("-200ppm", -200), ("+0ppm", 0)] {
            assert_eq!(text.parse(), Ok(Rate(ppm)));
            assert_eq!(Rate(ppm).to_string(), text);
        }
        assert_eq!("500ppm".parse(), Ok(Rate(500)));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for text in ["", "15", "--15s", "+-15s", "s", "+", "999999999999s"] {
            assert!(text.parse::<Offset>().is_err(), "{text:?}");
        }
        for text in ["", "500", "ppm", "--5ppm", "+-5ppm", "5.5ppm", "5 ppm"] {
            assert!(text.parse::<Rate>().is_err(), "{text:?}");
        }
    }
}
