//! Text in columns. If the columns do not fit, each row becomes several lines. Words and cells
//! may come from a record, so unsafe characters are made visible.

use super::*;

pub struct Grid {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

const GAP: &str = "  ";

pub type Column<T> = (&'static str, fn(&T) -> String);

impl Grid {
    pub fn of<'a, T: 'a>(columns: &[Column<T>], rows: impl IntoIterator<Item = &'a T>) -> Grid {
        let heads: Vec<&str> = columns.iter().map(|(head, _)| *head).collect();
        let mut grid = Grid::new(&heads);
        for row in rows {
            grid.row(columns.iter().map(|(_, cell)| cell(row)).collect());
        }
        grid
    }

    /// Makes an empty grid. The first column is text and aligned left; the others are aligned
    /// right.
    pub fn new(heads: &[&str]) -> Grid {
        Grid {
            heads: heads.iter().map(|head| (*head).to_owned()).collect(),
            rows: Vec::new(),
        }
    }

    pub fn row(&mut self, cells: Vec<String>) {
        let cells = cells.iter().map(|cell| shown::line(cell).into_owned());
        self.rows.push(cells.collect());
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns indented lines of at most this many columns.
    pub fn text(&self, indent: &str, width: usize) -> String {
        let all = || std::iter::once(&self.heads).chain(&self.rows);
        let widest = |column: usize| {
            let cells = all().filter_map(|row| row.get(column));
            cells
                .map(|cell: &String| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.heads.len()).map(widest).collect();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        if indent.len() + widths.iter().sum::<usize>() + gaps > width {
            return self.stacked(indent, width);
        }
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            let line = cells.collect::<Vec<_>>().join(GAP);
            format!("{indent}{}\n", line.trim_end())
        };
        all().map(line).collect()
    }

    fn stacked(&self, indent: &str, width: usize) -> String {
        let mut text = String::new();
        for row in &self.rows {
            let (first, rest) = match row.split_first() {
                Some((first, rest)) => (first.as_str(), rest),
                None => continue,
            };
            let named = rest.iter().zip(self.heads.iter().skip(1));
            let named = named.filter(|(cell, _)| !cell.is_empty());
            let mut named: Vec<String> = named
                .map(|(cell, head)| format!("{head} {cell},"))
                .collect();
            if let Some(last) = named.last_mut() {
                last.pop();
            }
            let named = named.iter().map(String::as_str);
            // A name is clear by itself; a number needs its head.
            let is_number = first.parse::<f64>().is_ok();
            let head = self.heads.first().filter(|_| is_number);
            let head: String = head.iter().map(|head| format!("{head} ")).collect();
            text += &wrapped(&(head + first), indent, width);
            let deeper = format!("{indent}    ");
            text += &filled(named, &deeper, &format!("{deeper}  "), width);
        }
        text
    }
}

/// Wraps words into lines of at most this many columns, where possible; the lines after the
/// first are indented further.
pub fn wrapped(words: &str, indent: &str, width: usize) -> String {
    wrapped_painted(&shown::line(words), indent, width)
}

/// Does the same for text with colours that is already safe to show.
pub fn wrapped_painted(words: &str, indent: &str, width: usize) -> String {
    let deeper = format!("{indent}  ");
    filled(words.split_whitespace(), indent, &deeper, width)
}

/// Wraps words behind a prefix; the following lines are aligned with the first word.
pub fn hung(first: &str, words: &str, width: usize) -> String {
    let below = " ".repeat(columns(first));
    let words = shown::line(words);
    filled(words.split_whitespace(), first, &below, width)
}

/// Returns how many columns a text takes: colours take none.
pub fn columns(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let before = parts.next().map_or(0, |part| part.chars().count());
    let painted = parts.map(|part| match part.split_once('m') {
        Some((_, shown)) => shown.chars().count(),
        None => 0,
    });
    before + painted.sum::<usize>()
}

fn filled<'a>(
    parts: impl Iterator<Item = &'a str>,
    first: &str,
    below: &str,
    width: usize,
) -> String {
    let mut text = String::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for part in parts {
        let length = columns(&line) + columns(part);
        if !empty && length + 1 > width {
            text += &line;
            text.push('\n');
            line = below.to_owned();
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line += part;
        empty = false;
    }
    if !empty {
        text += &line;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid() -> Grid {
        let mut grid = Grid::new(&["case", "p50", "max"]);
        grid.row(["queue", "1ms", "12.5ms"].map(str::to_owned).into());
        grid.row(["spin", "900us", "-"].map(str::to_owned).into());
        grid
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        let expected = "  case     p50     max\n  queue    1ms  12.5ms\n  spin   900us       -\n";
        assert_eq!(grid().text("  ", 80), expected);
    }

    #[test]
    fn what_does_not_fit_is_told_row_by_row() {
        let expected = "queue\n    p50 1ms,\n      max 12.5ms\nspin\n    p50 900us,\n      max -\n";
        assert_eq!(grid().text("", 16), expected);
    }

    #[test]
    fn a_row_that_begins_with_a_number_says_of_what() {
        let mut grid = Grid::new(&["contenders", "p50"]);
        grid.row(["50", "1ms"].map(str::to_owned).into());
        assert_eq!(grid.text("", 14), "contenders 50\n    p50 1ms\n");
    }

    #[test]
    fn words_and_cells_out_of_a_record_are_shown() {
        let hostile = "a\u{1b}[2J\nb";
        assert_eq!(wrapped(hostile, "", 80), "a\\x1b[2J\\nb\n");
        assert_eq!(hung("1 s  ", hostile, 80), "1 s  a\\x1b[2J\\nb\n");
        let mut grid = Grid::new(&["case", "p50"]);
        grid.row([hostile, "1ms"].map(str::to_owned).into());
        assert_eq!(grid.text("", 80), "case         p50\na\\x1b[2J\\nb  1ms\n");
    }

    #[test]
    fn words_are_parted_only_between_them() {
        assert_eq!(wrapped("one two three", "", 8), "one two\n  three\n");
        assert_eq!(wrapped("unpartable", "", 4), "unpartable\n");
        assert_eq!(wrapped("", "  ", 4), "");
        assert_eq!(
            hung("1 s  ", "one two three", 13),
            "1 s  one two\n     three\n"
        );
        let painted = "\u{1b}[32mone two\u{1b}[0m three";
        assert_eq!(wrapped_painted(painted, "", 13).lines().count(), 1);
    }
}
