use std::time::Duration;

/// Parses `2s`, `500ms`, `1m`: a whole number and its unit, nothing else.
///
/// A bare number is refused on purpose: a reader could not distinguish two seconds from
/// two milliseconds.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit_at);
    let ms_per_unit = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    number.checked_mul(ms_per_unit).map(Duration::from_millis)
}

/// Returns the shortest text that [`parse_duration`] reads as the same duration, to the
/// millisecond.
pub fn format_duration(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        ms if ms > 0 && ms.is_multiple_of(60_000) => format!("{}m", ms / 60_000),
        ms if ms > 0 && ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_and_print_the_same() {
        for (text, ms) in [
            ("0ms", 0),
            ("500ms", 500),
            ("2s", 2_000),
            ("2500ms", 2_500),
            ("1m", 60_000),
            ("90s", 90_000),
        ] {
            let duration = Duration::from_millis(ms);
            assert_eq!(parse_duration(text), Some(duration), "{text}");
            assert_eq!(format_duration(duration), text);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let odd = [
            "", "2", "s", "-1s", "+1s", "1.5s", "2 s", " 2s", "2S", "2h", "2sec", "٢s",
        ];
        let too_long = ["99999999999999999999s", "18446744073709551615m"];
        for text in odd.into_iter().chain(too_long) {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }
}
