/// The number of edits (insert, delete, replace, swap of neighbours) from one word to the other.
use strsim::osa_distance as distance;

/// Returns the hint for an unknown name: the nearest known one, else all of them.
pub fn suggestion(got: &str, known: &[&str]) -> String {
    match nearest(got, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there are none here".to_owned(),
        None => format!("known: {}", known.join(", ")),
    }
}

/// Longer names are not compared.
const LONGEST: usize = 64;

/// Returns the known name that was most likely meant, if any is near enough.
fn nearest<'a>(got: &str, known: &[&'a str]) -> Option<&'a str> {
    // Fewer edits than letters, because every one-letter name is one edit from every other.
    let length = got.chars().count();
    if length > LONGEST {
        return None;
    }
    let allowed = (length / 3).max(1).min(length.saturating_sub(1));
    known
        .iter()
        .filter(|name| name.chars().count().abs_diff(length) <= allowed)
        .map(|name| (distance(&got.to_lowercase(), &name.to_lowercase()), *name))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant_and_nothing_far_off() {
        let known = ["workers", "timeline", "cases"];
        assert_eq!(nearest("worker", &known), Some("workers"));
        assert_eq!(nearest("timelien", &known), Some("timeline"));
        assert_eq!(nearest("Cases", &known), Some("cases"));
        assert_eq!(nearest("banana", &known), None);
        assert_eq!(nearest("b", &["a", "resource"]), None);
        let endless = "workers".repeat(1_000_000);
        assert_eq!(nearest(&endless, &[&endless, "workers"]), None);
    }
}
