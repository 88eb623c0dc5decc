/// Parses `10M`, `500k`, `10_000_000`: a whole number, with an optional suffix for
/// thousands, millions or billions.
pub fn parse_count(text: &str) -> Option<u64> {
    let (number, times) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1_000),
        b'M' => (&text[..text.len() - 1], 1_000_000),
        b'G' => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let groups: Vec<&str> = number.split('_').collect();
    let is_group = |group: &&str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    if !groups.iter().all(is_group) {
        return None;
    }
    let number: u64 = groups.concat().parse().ok()?;
    number.checked_mul(times)
}

/// Joins words, with `between` between each two.
pub fn joined(words: impl IntoIterator<Item: ToString>, between: &str) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.to_string()).collect();
    words.join(between)
}

/// Formats a number for people, with a comma between thousands.
pub fn format_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_be_short_or_in_groups() {
        for (text, count) in [
            ("0", 0),
            ("7", 7),
            ("500k", 500_000),
            ("500K", 500_000),
            ("10M", 10_000_000),
            ("2G", 2_000_000_000),
            ("10_000_000", 10_000_000),
            ("1_0k", 10_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Some(count), "{text}");
        }
    }

    #[test]
    fn what_is_no_count_is_refused() {
        let odd = [
            "", "k", "M", "-1", "+1", "1.5M", "10 M", "10m", "10MB", "_1", "1_", "1__0", "0x10",
            "٢",
        ];
        let too_long = ["18446744073709551616", "18446744073709551615k"];
        for text in odd.into_iter().chain(too_long) {
            assert_eq!(parse_count(text), None, "{text:?}");
        }
    }

    #[test]
    fn thousands_are_set_apart() {
        for (count, text) in [(0, "0"), (999, "999"), (1_000, "1,000")] {
            assert_eq!(format_count(count), text);
        }
        assert_eq!(format_count(12_345_678), "12,345,678");
    }
}
