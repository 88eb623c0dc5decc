//! What is done with an input of each kind. An input may be refused; it must not
//! panic, hang, or take memory beyond its own size by much.
//!
//! The targets of `cargo fuzz` call these, and so does the test suite, with
//! every file of corpus/ and with mutations of them.

mod over_a_wire;
mod record;

pub use over_a_wire::{resource_http, resp, toxiproxy_http, worker_lines};
pub use record::{FILES as RECORD_FILES, record};

use fencepost::cluster::Topology;
use fencepost::report::{diff, document};
use fencepost::scenario::{Scenario, Settings, Surroundings};
use std::path::Path;

pub type Target = fn(&[u8]);

/// Every target, by its name.
pub const TARGETS: [(&str, Target); 8] = [
    ("scenario", scenario),
    ("topology", topology),
    ("record", record),
    ("result", result),
    ("worker_lines", worker_lines),
    ("resource_http", resource_http),
    ("toxiproxy_http", toxiproxy_http),
    ("resp", resp),
];

/// A scenario that somebody wrote by hand.
pub fn scenario(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let file = Path::new("scenario.yml");
    let parsed = Scenario::parse(file, &text, &Settings::default(), &Surroundings::Recorded);
    match parsed {
        Ok(scenario) => assert!(!scenario.cases.is_empty(), "nothing would be run"),
        Err(invalid) => has_places(&invalid.to_string(), "scenario.yml"),
    }
}

/// A topology that somebody wrote by hand.
pub fn topology(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Err(invalid) = Topology::parse(Path::new("compose/topology.yml"), &text) {
        has_places(&invalid.to_string(), "compose/topology.yml");
    }
}

/// Every complaint says where: file:line:column.
fn has_places(complaints: &str, file: &str) {
    let has_place = |line: &str| {
        let place = line
            .strip_prefix(file)
            .and_then(|rest| rest.strip_prefix(':'));
        let mut numbers = place.into_iter().flat_map(|place| place.split(':'));
        let mut number = || numbers.next().and_then(|text| text.parse::<usize>().ok());
        number().is_some() && number().is_some()
    };
    assert!(
        complaints.lines().any(has_place),
        "no place: {complaints:?}"
    );
}

/// A `result.json` that came from elsewhere.
pub fn result(input: &[u8]) {
    let Ok(result) = document::read(input) else {
        return;
    };
    for case in result.stable.cases.keys() {
        result.violations(case);
        result.excused(case);
        result.promises(case);
    }
    let same = diff::compare(&result, &result, diff::DEFAULT_RATIO);
    let same = same.expect("a result can be compared with itself");
    let has_changes = same.verdict_changed || !same.findings.is_empty();
    assert!(
        !has_changes,
        "a result differs from itself: {}",
        same.headline()
    );
}
