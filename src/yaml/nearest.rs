/// What to say about a name that is not known: the nearest right one, else all.
pub fn suggestion(got: &str, known: &[&str]) -> String {
    match nearest(got, known) {
        Some(name) => format!("did you mean `{name}`?"),
        None if known.is_empty() => "there are none here".to_owned(),
        None => format!("known: {}", known.join(", ")),
    }
}

/// Nobody mistypes a longer name.
const LONGEST: usize = 64;

/// The known name that was most likely meant, if any is near enough.
fn nearest<'a>(got: &str, known: &[&'a str]) -> Option<&'a str> {
    // Fewer edits than letters: every one-letter name is one edit from every other.
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

/// Edits (insert, delete, replace, swap of neighbours) from one word to the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let mut best = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped {
                    best = best.min(table[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    table[a.len()][b.len()]
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
