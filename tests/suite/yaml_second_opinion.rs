//! Our YAML reader keeps positions; another one must see the same tree.

use crate::support::project;
use fencepost::yaml::{Node, Value, parse};
use serde_yaml::Value as Theirs;
use std::fs;
use std::path::Path;

#[test]
fn both_readers_see_the_same_in_every_file() {
    let mut files = 0;
    for folder in ["scenarios", "compose", "toxiproxy"] {
        for entry in fs::read_dir(project().join(folder)).expect("a folder") {
            let path = entry.expect("readable").path();
            if path.extension().is_some_and(|extension| extension == "yml") {
                same(&path, &fs::read_to_string(&path).expect("readable"));
                files += 1;
            }
        }
    }
    assert!(files >= 2, "a scenario and a topology at least");
}

#[test]
fn both_readers_see_the_same_in_tricky_documents() {
    for text in [
        "a: on\nb: off\nc: yes\nd: no\n",
        "a: 1..\nb: ..3\nc: 1..3\nd: 2\n",
        "a: 2s\nb: 500ms\nc: 12:30\n",
        "a: 'it''s'\nb: \"a\\tb\\u00e9\"\nc: plain # not a comment's text\n",
        "a: >-\n  folded\n  text\n\n  and more\nb: |\n  kept\n  as is\n",
        "a: [1, two, { three: 3 }]\nb: { c: [], d: {} }\n",
        "- - a\n  - b\n- c: d\n  e:\n  - f\n",
        "'quoted key': 1\n\"another\": x#y\nurl: http://host:80/p\n",
        "a: \"\"\nb: ''\n",
        "# before\n---\na: b # behind\n...\n",
        "a: é ü 漢字 🔒\n",
        "a:\n  - { when: a.at_gate, do: { pause: a } }\n",
        "a: \"1\"\nb: \"true\"\nc: true\n",
    ] {
        same(Path::new("tricky.yml"), text);
    }
}

#[test]
fn both_readers_refuse_the_same() {
    for text in [
        "a: [1, 2\n",
        "a: 'open\n",
        "a: b: c\n",
        "a: 1\na: 2\n",
        "a:\n\t- tab\n",
        "{ a: 1\n",
        "a: *nobody\n",
    ] {
        let ours = parse(Path::new("wrong.yml"), text);
        assert!(ours.is_err(), "{text:?} was read as {ours:?}");
        let theirs = serde_yaml::from_str::<Theirs>(text);
        assert!(theirs.is_err(), "{text:?} was read as {theirs:?}");
    }
}

#[track_caller]
fn same(path: &Path, text: &str) {
    let ours = parse(path, text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let theirs: Theirs =
        serde_yaml::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(
        as_theirs(&ours),
        as_text(&theirs),
        "{}\n{text}",
        path.display()
    );
}

/// Our tree in their type, every scalar as its text.
fn as_theirs(node: &Node) -> Theirs {
    match &node.value {
        Value::Scalar(text) => Theirs::String(text.clone()),
        Value::List(items) => Theirs::Sequence(items.iter().map(as_theirs).collect()),
        Value::Map(entries) => {
            let entries = entries.iter();
            let entries =
                entries.map(|(key, value)| (Theirs::String(key.value.clone()), as_theirs(value)));
            Theirs::Mapping(entries.collect())
        }
    }
}

/// Their tree with every scalar as its text. `1` and `true` are written only
/// one way here, so nothing is lost.
fn as_text(theirs: &Theirs) -> Theirs {
    match theirs {
        Theirs::Null => panic!("no file here leaves a value out"),
        Theirs::Bool(truth) => Theirs::String(truth.to_string()),
        Theirs::Number(number) => Theirs::String(number.to_string()),
        Theirs::String(text) => Theirs::String(text.clone()),
        Theirs::Sequence(items) => Theirs::Sequence(items.iter().map(as_text).collect()),
        Theirs::Mapping(entries) => {
            let entries = entries.iter();
            Theirs::Mapping(
                entries
                    .map(|(key, value)| (as_text(key), as_text(value)))
                    .collect(),
            )
        }
        Theirs::Tagged(_) => panic!("no file here has tags"),
    }
}
