//! Tables of a page. Each is in a box of its own, so that a wide one scrolls
//! alone and the page does not.

use crate::report::markup::{cut, element, escaped, opened};
use std::fmt::Display;

/// Letters of one cell.
const LONGEST: usize = 1_000;

pub struct Cell {
    opened: String,
    inner: String,
}

impl Cell {
    pub fn words(words: impl Display) -> Cell {
        Cell::markup(shown(words))
    }

    /// A name stays in its line.
    pub fn name(name: impl Display) -> Cell {
        Cell {
            opened: opened("td", &[("class", &"name")]),
            inner: shown(name),
        }
    }

    /// Whole sentences need some width, however narrow the page is.
    pub fn prose(words: impl Display) -> Cell {
        Cell {
            opened: opened("td", &[("class", &"prose")]),
            inner: shown(words),
        }
    }

    /// Before all that is in the cell already.
    pub fn after(mut self, markup: &str) -> Cell {
        self.inner.insert_str(0, markup);
        self
    }

    pub fn markup(inner: String) -> Cell {
        Cell {
            opened: "<td".to_owned(),
            inner,
        }
    }

    pub fn number(number: impl Display) -> Cell {
        Cell {
            opened: opened("td", &[("class", &"number")]),
            inner: shown(number),
        }
    }

    /// A count, named so that a program finds it.
    pub fn count(case: &str, what: &str, count: u64) -> Cell {
        let class = [("class", &"number" as &dyn Display)];
        let named: [(&str, &dyn Display); 2] = [("data-case", &case), ("data-count", &what)];
        Cell {
            opened: opened("td", &[class.as_slice(), &named].concat()),
            inner: count.to_string(),
        }
    }
}

fn shown(words: impl Display) -> String {
    escaped(&cut(&words.to_string(), LONGEST))
}

/// Nothing where there are no rows. Rows beyond the first `most` are left out,
/// and it is said how many, and where they are.
pub fn table(
    heads: &[&str],
    rows: impl IntoIterator<Item = Vec<Cell>, IntoIter: ExactSizeIterator>,
    most: usize,
    rest: &str,
) -> String {
    let rows = rows.into_iter();
    if rows.len() == 0 {
        return String::new();
    }
    let left_out = rows.len().saturating_sub(most);
    let heads = heads.iter();
    let heads = heads.map(|head| element("th", &[("scope", &"col")], &escaped(head)));
    let mut text = format!(
        "<div class=\"wide\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        heads.collect::<String>()
    );
    for row in rows.take(most) {
        let cells = row.into_iter();
        let cells = cells.map(|Cell { opened, inner }| format!("{opened}>{inner}</td>"));
        text += &format!("<tr>{}</tr>\n", cells.collect::<String>());
    }
    text += "</tbody>\n</table></div>\n";
    if left_out > 0 {
        text += &format!("<p><small>{left_out} more are in {rest}.</small></p>\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_from_files_stay_words() {
        let rows = vec![vec![Cell::words("<script>"), Cell::number("<b>")]];
        let text = table(&["<i>"], rows, 5, "nowhere");
        assert!(!text.contains("<script>") && !text.contains("<b>") && !text.contains("<i>"));
    }

    #[test]
    fn what_is_left_out_is_said() {
        let rows = (0..7).map(|n| vec![Cell::number(n)]);
        let text = table(&["n"], rows, 5, "result.json");
        assert_eq!(text.matches("<td").count(), 5);
        assert!(text.contains("2 more are in result.json."), "{text}");
        assert_eq!(table(&["n"], Vec::new(), 5, "result.json"), "");
        let long = Cell::words("<".repeat(2 * LONGEST));
        let text = table(&["n"], vec![vec![long]], 5, "result.json");
        assert_eq!(text.matches("&lt;").count(), LONGEST - 1);
    }
}
