//! Makes text from records and files safe to show.
//!
//! A key, an owner or an error can contain anything. On a screen it must not move the cursor,
//! change a colour, start a line or change the reading direction, so such characters are
//! escaped: `\x1b`, `\n`, `\u{202e}`. Printable text stays unchanged, including a backslash.

use super::*;

/// The only colour codes that a report uses; any other escape came from a record.
const COLOR_CODES: [&str; 5] = ["[0m", "[31m", "[32m", "[33m", "[36m"];

/// Quotes a word so that a shell takes it for one.
pub fn in_a_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/=:,@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Escapes text so that it stays in one line.
pub fn line(text: &str) -> Cow<'_, str> {
    replaced(text, is_unseen, write_out)
}

/// Escapes text but keeps its line breaks and tabs.
pub fn lines(text: &str) -> Cow<'_, str> {
    let is_out = |c| is_unseen(c) && !matches!(c, '\n' | '\t');
    replaced(text, is_out, write_out)
}

/// Escapes a whole screen but keeps the colours that a report gave it.
pub fn painted(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return lines(text);
    }
    let mut parts = text.split('\u{1b}');
    let mut screen = lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        match COLOR_CODES.iter().any(|code| part.starts_with(code)) {
            true => screen.push('\u{1b}'),
            false => write_out('\u{1b}', &mut screen),
        }
        screen += &lines(part);
    }
    screen.into()
}

/// Escapes a JSON document: the values stay the same, and a terminal only prints the characters.
pub fn json(document: &str) -> Cow<'_, str> {
    let is_out = |c| is_unseen(c) && !matches!(c, '\n' | '\t' | '\r');
    replaced(document, is_out, |c, text| {
        // All of them have four digits: none is beyond the basic plane.
        let _ = write!(text, "\\u{:04x}", c as u32);
    })
}

/// Returns whether a character does something other than being visible.
fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{fffe}'
                | '\u{ffff}'
        )
}

fn write_out(c: char, text: &mut String) {
    let _ = match c {
        '\n' => write!(text, "\\n"),
        '\r' => write!(text, "\\r"),
        '\t' => write!(text, "\\t"),
        c if c.is_ascii() => write!(text, "\\x{:02x}", c as u32),
        c => write!(text, "\\u{{{:x}}}", c as u32),
    };
}

fn replaced(
    text: &str,
    is_out: impl Fn(char) -> bool,
    write: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    if !text.contains(&is_out) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_out(c) {
            true => write(c, &mut shown),
            false => shown.push(c),
        }
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unseen_characters_are_written_out_and_printable_text_stays() {
        for (text, expected) in [
            ("account-42", "account-42"),
            ("Schlüssel 鍵 🔑 👩‍🚀 \\x", "Schlüssel 鍵 🔑 👩‍🚀 \\x"),
            ("a\u{1b}[31mb\u{7f}", "a\\x1b[31mb\\x7f"),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\x00"),
            ("\u{9b}31m\u{85}", "\\u{9b}31m\\u{85}"),
            (
                "\u{202e}evil\u{2066}\u{2069}",
                "\\u{202e}evil\\u{2066}\\u{2069}",
            ),
            ("\u{200e}\u{200f}\u{61c}", "\\u{200e}\\u{200f}\\u{61c}"),
            ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}"),
        ] {
            assert_eq!(line(text), expected);
            assert_eq!(line(&line(text)), expected, "shown twice");
        }
    }

    #[test]
    fn lines_stay_where_they_are_meant() {
        assert_eq!(lines("a\n\tb\r\n\u{1b}c"), "a\n\tb\\r\n\\x1bc");
    }

    #[test]
    fn only_our_own_colours_reach_a_terminal() {
        let screen = "\u{1b}[31mbad\u{1b}[0m \u{1b}[2J\u{1b}]0;title\u{7}\n";
        let shown = "\u{1b}[31mbad\u{1b}[0m \\x1b[2J\\x1b]0;title\\x07\n";
        assert_eq!(painted(screen), shown);
        assert_eq!(painted("a\u{9b}b\n"), "a\\u{9b}b\n");
    }

    #[test]
    fn a_document_keeps_its_values() {
        let value = serde_json::json!({ "key": "\u{1b}\u{7f}\u{9b}31m\u{202e}\u{2028}ü\n" });
        let text = serde_json::to_string_pretty(&value).unwrap();
        let shown = json(&text);
        assert!(shown.chars().all(|c| c == '\n' || !is_unseen(c)), "{shown}");
        let again: serde_json::Value = serde_json::from_str(&shown).unwrap();
        assert_eq!(again, value);
    }
}
