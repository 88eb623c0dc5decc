//! Text as it may stand in other text: in XML and HTML, in an element or an attribute;
//! in Markdown, in a cell of a table.

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

/// What XML forbids is left out: names come from files.
pub fn escaped(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '&' => text += "&amp;",
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            '"' => text += "&quot;",
            '\n' | '\t' => text.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => text.push(c),
        }
    }
    text
}

/// Nothing that a name holds ends a cell or starts markup.
pub fn cell(words: &str) -> String {
    let mut text = String::with_capacity(words.len());
    for c in words.chars() {
        match c {
            '\n' | '\r' => text.push(' '),
            '|' | '\\' | '*' | '_' | '`' | '[' | ']' => text.extend(['\\', c]),
            '<' => text += "&lt;",
            '>' => text += "&gt;",
            c => text.push(c),
        }
    }
    text
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
    fn values_cannot_break_out_of_their_attribute() {
        let text = element("a", &[("title", &"\"><b>"), ("id", &"")], "x");
        assert_eq!(text, "<a title=\"&quot;&gt;&lt;b&gt;\">x</a>");
    }
}
