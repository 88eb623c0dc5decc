//! Text as it may stand in XML and HTML, in an element or an attribute.

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
