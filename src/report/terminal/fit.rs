//! Shows as much about the cases as fits on a screen, most about the worst.

use super::case::CaseLines;

/// The text about the cases.
pub struct Fitted {
    pub text: String,
    /// The cases that are not shown completely.
    pub shortened: Vec<String>,
}

/// Fits the cases into this many lines, including a blank one after them. `order` has the
/// positions of the cases, worst first.
pub fn fit(cases: &[CaseLines], order: &[usize], room: usize) -> Fitted {
    let mut bodies = vec![0; cases.len()];
    // One line is reserved for the number of cases that are not even named.
    let named = match cases.len() < room {
        true => cases.len(),
        false => room.saturating_sub(2),
    };
    let (named, unnamed) = order.split_at(named);
    let rest = usize::from(!unnamed.is_empty());
    for (rank, place) in named.iter().enumerate() {
        let case = &cases[*place];
        let (found, whole) = (case.found.len(), case.body().count());
        // A blank line comes after each body, and after the last head if it has no body.
        let ends_bare = bodies.last().is_some_and(|body| *body == 0) && place + 1 != cases.len();
        let blank = usize::from(ends_bare || rest > 0);
        let left = room.saturating_sub(named.len() + rest + blank + taken(&bodies) + 1);
        bodies[*place] = match (left >= whole, left >= found) {
            (true, _) => whole,
            // The worst case is shown as far as there is room.
            _ if rank == 0 => left,
            (_, true) => found,
            _ => 0,
        };
    }
    let mut text = String::new();
    let mut shortened = Vec::new();
    for (place, (case, body)) in cases.iter().zip(&bodies).enumerate() {
        if unnamed.contains(&place) {
            shortened.push(case.name.clone());
            continue;
        }
        text += &format!("{}\n", case.head);
        for line in case.body().take(*body) {
            text += &format!("{line}\n");
        }
        if *body > 0 {
            text.push('\n');
        }
        if *body < case.body().count() {
            shortened.push(case.name.clone());
        }
    }
    if !unnamed.is_empty() {
        text += &format!("and {} more cases\n", unnamed.len());
    }
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push('\n');
    }
    Fitted { text, shortened }
}

/// Returns the lines that the bodies take, each with the blank line after it.
fn taken(bodies: &[usize]) -> usize {
    let shown = bodies.iter().filter(|lines| **lines > 0);
    shown.map(|lines| lines + 1).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, found: usize, story: usize) -> CaseLines {
        let lines = |what: &str, count: usize| {
            let lines = (1..=count).map(|line| format!("  {name} {what} {line}"));
            lines.collect()
        };
        CaseLines {
            name: name.to_owned(),
            head: format!("{name}: judged"),
            found: lines("found", found),
            story: lines("story", story),
        }
    }

    #[test]
    fn what_fits_is_shown_whole() {
        let cases = [case("a", 1, 2), case("b", 1, 0)];
        let fitted = fit(&cases, &[0, 1], 8);
        let expected =
            "a: judged\n  a found 1\n  a story 1\n  a story 2\n\nb: judged\n  b found 1\n\n";
        assert_eq!(fitted.text, expected);
        assert_eq!(fitted.shortened, [""; 0]);
    }

    #[test]
    fn the_worst_is_told_first_and_in_the_order_of_the_file() {
        let cases = [case("good", 1, 7), case("bad", 1, 7)];
        let fitted = fit(&cases, &[1, 0], 14);
        assert!(
            fitted
                .text
                .starts_with("good: judged\n  good found 1\n\nbad: judged\n")
        );
        assert!(fitted.text.contains("  bad story 7\n"), "{}", fitted.text);
        assert_eq!(fitted.shortened, ["good"]);
    }

    #[test]
    fn no_number_of_cases_or_lines_is_too_much() {
        for (count, found, story) in [(1, 100, 0), (3, 9, 9), (12, 2, 9), (28, 1, 1), (200, 3, 3)] {
            let cases = (0..count).map(|number| case(&format!("c{number}"), found, story));
            let cases: Vec<CaseLines> = cases.collect();
            let order: Vec<usize> = (0..count).rev().collect();
            let fitted = fit(&cases, &order, 25);
            let lines = fitted.text.lines().count();
            assert!(lines <= 25, "{count} cases: {lines} lines\n{}", fitted.text);
            assert!(lines >= 20.min(count), "the room is used\n{}", fitted.text);
            assert!(!fitted.shortened.is_empty());
            let worst = format!("c{}: judged", count - 1);
            assert!(fitted.text.contains(&worst), "{}", fitted.text);
        }
    }
}
