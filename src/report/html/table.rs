//! Tables of a page. Each is in its own box, so that a wide one scrolls and the page does not.

use super::*;
use std::fmt::Display;

/// The most letters of one cell.
const LONGEST: usize = 1_000;

pub fn words(words: impl Display) -> Markup {
    html! { td { (short(words)) } }
}

/// Returns a cell for a name, which is not wrapped.
pub fn name(name: impl Display) -> Markup {
    html! { td.name { (short(name)) } }
}

/// Returns a cell for whole sentences, which need some width, however narrow the page is.
pub fn prose(words: impl Display) -> Markup {
    html! { td.prose { (short(words)) } }
}

pub fn number(number: impl Display) -> Markup {
    html! { td.number { (short(number)) } }
}

pub fn markup(inner: Markup) -> Markup {
    html! { td { (inner) } }
}

fn short(words: impl Display) -> String {
    cut(&words.to_string(), LONGEST).into_owned()
}

/// Returns a table, or nothing if there are no rows. Rows beyond the first `most` are left out;
/// a note says how many, and where they are.
pub fn table(
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<Markup>, IntoIter: ExactSizeIterator>,
    most: usize,
    rest: &str,
) -> Markup {
    let rows = rows.into_iter();
    let (count, left_out) = (rows.len(), rows.len().saturating_sub(most));
    html! {
        @if count > 0 {
            div.wide { table {
                thead { tr { @for head in heads { th scope="col" { (head) } } } }
                tbody { @for row in rows.take(most) { tr { @for cell in row { (cell) } } "\n" } }
            } }
            @if left_out > 0 { p { small { (left_out) " more are in " (rest) "." } } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_stay_words() {
        let rows = vec![vec![words("<script>"), number("<b>")]];
        let text = table(&["<i>"], rows, 5, "nowhere").into_string();
        assert!(!text.contains("<script>") && !text.contains("<b>") && !text.contains("<i>"));
    }

    #[test]
    fn what_is_left_out_is_said() {
        let rows = (0..7).map(|n| vec![number(n)]);
        let text = table(&["n"], rows, 5, "result.json").into_string();
        assert_eq!(text.matches("<td").count(), 5);
        assert!(text.contains("2 more are in result.json."), "{text}");
        assert_eq!(table(&["n"], Vec::new(), 5, "result.json").0, "");
        let long = words("<".repeat(2 * LONGEST));
        let text = table(&["n"], vec![vec![long]], 5, "result.json").into_string();
        assert_eq!(text.matches("&lt;").count(), LONGEST - 1);
    }
}
