//! JUnit XML as others read it: through a parser that is not ours.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A script that prints elements as `{"tag", "attributes", "text", "children"}`.
const READ: &str = "
import json, sys
from xml.etree import ElementTree
def told(element):
    return {'tag': element.tag, 'attributes': element.attrib, 'text': (element.text or '').strip(),
            'children': [told(child) for child in element]}
print(json.dumps(told(ElementTree.parse(sys.argv[1]).getroot())))
";

/// The children and attributes that the schema of the Jenkins xUnit plugin allows in each
/// element, as far as we need it.
const MAY_HAVE: [(&str, &[&str], &[&str]); 8] = [
    (
        "testsuites",
        &["testsuite"],
        &["name", "time", "tests", "failures", "errors"],
    ),
    (
        "testsuite",
        &["properties", "testcase"],
        &["name", "time", "tests", "failures", "errors"],
    ),
    ("properties", &["property"], &[]),
    ("property", &[], &["name", "value"]),
    (
        "testcase",
        &["error", "failure", "system-out"],
        &["classname", "name", "time"],
    ),
    ("error", &[], &["type", "message"]),
    ("failure", &[], &["type", "message"]),
    ("system-out", &[], &[]),
];

/// Reads a file of JUnit XML, which must be well-formed, of the usual shape, and have correct
/// counts.
#[track_caller]
pub fn junit(path: &Path) -> Value {
    let output = Command::new("python3")
        .args(["-c", READ])
        .arg(path)
        .stdin(Stdio::null())
        .output()
        .expect("python3 is here");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", path.display());
    let root: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(root["tag"], "testsuites");
    check_shape(&root);
    for counted in [all(&root, "testsuites"), all(&root, "testsuite")].concat() {
        for (attribute, tag) in [
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
        ] {
            let said = counted["attributes"][attribute].as_str().map(str::to_owned);
            let found = all(counted, tag).len().to_string();
            assert_eq!(said, Some(found), "{attribute} of {counted:#}");
        }
    }
    root
}

/// Returns the element itself and everything below it, if it has this tag.
pub fn all<'a>(element: &'a Value, tag: &str) -> Vec<&'a Value> {
    let children = element["children"].as_array().into_iter().flatten();
    let below = children.flat_map(|child| all(child, tag));
    let own = (element["tag"] == tag).then_some(element);
    own.into_iter().chain(below).collect()
}

fn check_shape(element: &Value) {
    let tag = element["tag"].as_str().expect("a name");
    let rule = MAY_HAVE.iter().find(|(name, ..)| *name == tag);
    let (_, children, attributes) = rule.unwrap_or_else(|| panic!("no schema has {tag}"));
    for name in element["attributes"]
        .as_object()
        .expect("attributes")
        .keys()
    {
        assert!(attributes.contains(&name.as_str()), "{tag} has {name}");
    }
    for child in element["children"].as_array().expect("children") {
        let name = child["tag"].as_str().expect("a name");
        assert!(children.contains(&name), "{name} stands in {tag}");
        check_shape(child);
    }
}
