/// `10M`, `500k`, `10_000_000`: a whole number, in thousands, millions or thousands
/// of millions where it says so.
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

/// With a comma between thousands, for people.
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
        for text in [
            "",
            "k",
            "M",
            "-1",
            "+1",
            "1.5M",
            "10 M",
            "10m",
            "10MB",
            "_1",
            "1_",
            "1__0",
            "0x10",
            "٢",
            "18446744073709551616",
            "18446744073709551615k",
        ] {
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
