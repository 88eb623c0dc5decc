/// Returns the time in a run's name, `20261116T014205.123Z-1`, as people write it; a name
/// without a time is returned unchanged.
pub fn when(name: &str) -> String {
    moment(name).unwrap_or_else(|| name.to_owned())
}

/// Returns whether a run makes folders with such names.
pub fn is_of_a_run(name: &str) -> bool {
    moment(name).is_some()
}

fn moment(name: &str) -> Option<String> {
    let digits = |from: usize, to: usize| {
        let part = name.get(from..to)?;
        part.bytes().all(|b| b.is_ascii_digit()).then_some(part)
    };
    let is_ours = name.get(8..9)? == "T" && name.get(19..21)? == "Z-";
    let date = [digits(0, 4)?, digits(4, 6)?, digits(6, 8)?].join("-");
    let time = [digits(9, 11)?, digits(11, 13)?, digits(13, 15)?].join(":");
    is_ours.then(|| format!("{date} {time} UTC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_moment_or_itself() {
        assert_eq!(when("20261116T014205.123Z-1"), "2026-11-16 01:42:05 UTC");
        for name in ["", "1", "yesterday-at-noon-or-so", "2026ö116T014205.123Z-1"] {
            assert_eq!(when(name), name);
            assert!(!is_of_a_run(name), "{name}");
        }
    }
}
