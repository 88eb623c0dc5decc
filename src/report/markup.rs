//! Escapes text for XML and HTML (elements and attributes) and for Markdown (cells of tables).

use super::*;

/// Formats a coordinate to a tenth of a pixel: nobody sees more.
pub fn short(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// Escapes markup and makes invisible characters visible. Line breaks and tabs stay.
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

/// Cuts a text that is too long; the recorded files have all of it.
pub fn cut(words: &str, most: usize) -> Cow<'_, str> {
    match words.char_indices().nth(most) {
        None => Cow::Borrowed(words),
        Some(_) => Cow::Owned(words.chars().take(most - 1).chain(['…']).collect()),
    }
}

/// Escapes text for Markdown, so that no name ends a cell, starts markup or becomes a link.
pub fn cell(words: &str) -> String {
    let words = shown::line(words);
    let mut text = String::with_capacity(words.len());
    for (at, c) in words.char_indices() {
        // GitHub turns these into links by itself.
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

/// Returns Markdown code in backticks, which also works in a cell of a table.
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
}
