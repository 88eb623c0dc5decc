//! Tables of a page. Each is in a box of its own, so that a wide one scrolls
//! alone and the page does not.

use crate::report::markup::{element, escaped, opened};
use std::fmt::Display;

pub struct Cell {
    opened: String,
    inner: String,
}

impl Cell {
    pub fn words(words: impl Display) -> Cell {
        Cell::markup(escaped(&words.to_string()))
    }

    /// A name stays in its line.
    pub fn name(name: impl Display) -> Cell {
        Cell {
            opened: opened("td", &[("class", &"name")]),
            inner: escaped(&name.to_string()),
        }
    }

    /// Whole sentences need some width, however narrow the page is.
    pub fn prose(inner: String) -> Cell {
        Cell {
            opened: opened("td", &[("class", &"prose")]),
            inner,
        }
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
            inner: escaped(&number.to_string()),
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

/// Nothing where there are no rows. Rows beyond the first `most` are left out,
/// and it is said how many, and where they are.
pub fn table(heads: &[&str], rows: Vec<Vec<Cell>>, most: usize, rest: &str) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let left_out = rows.len().saturating_sub(most);
    let heads = heads.iter();
    let heads = heads.map(|head| element("th", &[("scope", &"col")], &escaped(head)));
    let mut text = format!(
        "<div class=\"wide\"><table>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        heads.collect::<String>()
    );
    for row in rows.into_iter().take(most) {
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
        let rows = (0..7).map(|n| vec![Cell::number(n)]).collect();
        let text = table(&["n"], rows, 5, "result.json");
        assert_eq!(text.matches("<td").count(), 5);
        assert!(text.contains("2 more are in result.json."), "{text}");
        assert_eq!(table(&["n"], Vec::new(), 5, "result.json"), "");
    }
}
