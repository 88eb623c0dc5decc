//! Text as it may stand in other text: in XML and HTML, in an element or an attribute;
//! in Markdown, in a cell of a table.

use super::shown;
use std::borrow::Cow;
use std::fmt::{Display, Write};

/// Names and values of attributes; one without a value is left out.
pub type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// `<name key="value"`, up to what closes it.
pub fn opened(name: &str, attributes: Attributes<'_>) -> String {
    let mut text = format!("<{name}");
    for (key, value) in attributes {
        let value = escaped(&value.to_string());
        if !value.is_empty() {
            let _ = write!(text, " {key}=\"{value}\"");
        }
    }
    text
}

/// A whole element; `inner` is markup already.
pub fn element(name: &str, attributes: Attributes<'_>, inner: &str) -> String {
    format!("{}>{inner}</{name}>", opened(name, attributes))
}

/// An element of SVG with nothing in it.
pub fn empty(name: &str, attributes: Attributes<'_>) -> String {
    opened(name, attributes) + "/>"
}

/// A tenth of a pixel is as exact as anybody sees.
pub fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Nothing that a name holds is markup, and nothing of it is unseen. Lines and tabs stay.
pub fn escaped(words: &str) -> String {
    let words = shown::lines(words);
    let mut text = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '"' => text += "&quot;",
            c => text.push(c),
        }
    }
    text
}

/// The beginning of what is too long; the recorded files have all of it.
pub fn cut(words: &str, most: usize) -> Cow<'_, str> {
    match words.char_indices().nth(most) {
        None => Cow::Borrowed(words),
        Some(_) => Cow::Owned(words.chars().take(most - 1).chain(['…']).collect()),
    }
}

/// Markdown: nothing that a name holds ends a cell, starts markup or becomes a link.
pub fn cell(words: &str) -> String {
    let words = shown::line(words);
    let mut text = String::with_capacity(words.len());
    for (at, c) in words.char_indices() {
        // GitHub makes links of these without being asked.
        let is_a_link = match c {
            ':' => words[at..].starts_with("://"),
            '.' => words.as_bytes()[at.saturating_sub(3)..at].eq_ignore_ascii_case(b"www"),
            _ => false,
        };
        match c {
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' | '~' | '$' => text.extend(['\\', c]),
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            c if is_a_link => text.extend(['\\', c]),
            c => text.push(c),
        }
    }
    text
}

/// Markdown: words between backticks, also in a cell of a table.
pub fn code(words: &str) -> String {
    let words = shown::line(words).replace('`', "'").replace('|', "\\|");
    format!("`{words}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        assert_eq!(
            [1.0, 1.25, -0.01, 0.06].map(short),
            ["1", "1.2", "0", "0.1"]
        );
    }

    #[test]
    fn unseen_characters_are_written_out_in_markup_and_in_markdown() {
        let text = "]]>\u{1b}[31m\u{202e}\u{ffff}\u{85}\n\tx";
        let shown = "]]&gt;\\x1b[31m\\u{202e}\\u{ffff}\\u{85}\n\tx";
        assert_eq!(escaped(text), shown);
        let in_a_cell = r"\]\]&gt;\\x1b\[31m\\u{202e}\\u{ffff}\\u{85}\\n\\tx";
        assert_eq!(cell(text), in_a_cell);
    }

    #[test]
    fn nothing_in_a_cell_of_markdown_is_markup_or_a_link() {
        let text = "a|b [x](http://evil) WWW.evil <b> &lt; `c` *d* ~~e~~ $f$";
        let shown =
            r"a\|b \[x\](http\://evil) WWW\.evil &lt;b&gt; &amp;lt; \`c\` \*d\* \~\~e\~\~ \$f\$";
        assert_eq!(cell(text), shown);
        assert_eq!(code("a`|\n# b"), r"`a'\|\n# b`");
    }

    #[test]
    fn values_cannot_break_out_of_their_attribute() {
        let text = element("a", &[("title", &"\"><b>"), ("id", &"")], "x");
        assert_eq!(text, "<a title=\"&quot;&gt;&lt;b&gt;\">x</a>");
    }
}
