//! Text as it may stand in other text: in XML and HTML, in an element or an attribute;
//! in Markdown, in a cell of a table.

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
