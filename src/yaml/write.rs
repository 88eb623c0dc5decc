//! Writes a tree as a person would: what fits in a line stands in one, except at the top.

use super::{Node, Value};
use std::fmt::Write;

const WIDTH: usize = 100;
/// The fields whose parts have a line each.
const OPEN: [&str; 3] = ["workers", "timeline", "cases"];
/// A text for people, which is folded.
const TEXT: &str = "about";

/// Writes a scenario.
pub fn write(root: &Node) -> String {
    let mut text = String::new();
    for (key, node) in root.entries() {
        let key = key.value.as_str();
        match node.as_scalar().filter(|_| key == TEXT) {
            Some(words) => fold(words, &mut text),
            None => field(key, node, 0, OPEN.contains(&key), &mut text),
        }
    }
    text
}

fn fold(words: &str, text: &mut String) {
    text.push_str("about: >-\n ");
    let mut column = 1;
    for word in words.split_whitespace() {
        if column + word.len() > 84 && column > 1 {
            text.push_str("\n ");
            column = 1;
        }
        column += word.chars().count() + 1;
        let _ = write!(text, " {word}");
    }
    text.push('\n');
}

/// Writes `key: value`, on one line if it fits and need not be open.
fn field(key: &str, node: &Node, depth: usize, is_open: bool, text: &mut String) {
    let _ = write!(text, "{}{}:", "  ".repeat(depth), scalar(key));
    value(node, depth, is_open, text);
}

fn value(node: &Node, depth: usize, is_open: bool, text: &mut String) {
    let line = flow(node);
    let is_empty = node.items().is_empty() && node.entries().is_empty();
    let fits = 2 * depth + line.len() + 12 <= WIDTH;
    if is_empty || fits && !is_open {
        let _ = writeln!(text, " {line}");
        return;
    }
    text.push('\n');
    for (key, inner) in node.entries() {
        field(&key.value, inner, depth + 1, false, text);
    }
    for item in node.items() {
        let _ = write!(text, "{}-", "  ".repeat(depth + 1));
        match item.entries().split_first() {
            Some(((key, first), rest)) if 2 * depth + flow(item).len() + 5 > WIDTH => {
                let _ = write!(text, " {}:", scalar(&key.value));
                value(first, depth + 2, false, text);
                for (key, inner) in rest {
                    field(&key.value, inner, depth + 2, false, text);
                }
            }
            _ => {
                let _ = writeln!(text, " {}", flow(item));
            }
        }
    }
}

fn flow(node: &Node) -> String {
    match &node.value {
        Value::Scalar(text) => scalar(text),
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(entries) if entries.is_empty() => "{}".to_owned(),
        Value::Map(entries) => {
            let entries = entries.iter();
            let entries = entries.map(|(key, it)| format!("{}: {}", scalar(&key.value), flow(it)));
            format!("{{ {} }}", entries.collect::<Vec<String>>().join(", "))
        }
    }
}

/// Returns the text as it can stand anywhere; JSON's strings are YAML's.
fn scalar(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-+/#%> ".contains(c);
    let begins = |c: char| c.is_ascii_alphanumeric() || c == '/';
    let is_negative = |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or_default();
        digits.starts_with(|c: char| c.is_ascii_digit())
    };
    let is_plain = text.chars().all(plain)
        && (text.starts_with(begins) || is_negative(text))
        && !text.ends_with(' ')
        && !text.contains(" #");
    match is_plain {
        true => text.to_owned(),
        false => serde_json::Value::from(text).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::yaml::parse;
    use std::path::Path;

    const TEXT: &str = "\
name: x
about: >-
  Somebody holds it, and somebody else does as well.
lock: { backend: redis, ttl: 2s }
workers:
  a: { key: k, gate: [before_write, before_release] }
timeline:
  - { when: a.at_gate#2, do: [{ stall: a -> redis, for: 1s..2s }, { wait: 500ms }] }
  - when: a.acquired
    do:
      - { partition: [[a], [redis-1, redis-2]], by: refuse }
      - { skew: redis, by: -60m }
      - { wait: 3s }
cases:
  found: { fence: on, expect: { violations: { granted_while_held: 1.. } } }
";

    #[test]
    fn what_is_written_is_read_again_as_it_was_and_looks_as_people_write() {
        let read = |text: &str| parse(Path::new("x.yml"), text).unwrap();
        assert_eq!(write(&read(TEXT)), TEXT);
    }

    #[test]
    fn every_text_survives() {
        for odd in [
            "", " ", "a: b", "- a", "#", "a #b", "[x]", "{", "é", "\n", "~", "a,b", "-x",
        ] {
            let tree = Node::mapping([("k", Node::of_items(vec![Node::scalar(odd)]))]);
            let again = parse(Path::new("x.yml"), &write(&tree)).unwrap();
            assert_eq!(again.get("k").unwrap().items()[0].as_scalar(), Some(odd));
        }
    }
}
