//! A `result.json` read back. What a later version may add is passed over; what
//! is not there is not taken for nothing.

use super::json::SCHEMA_VERSION;
use super::shown;
use crate::model::{LockOutcome, Name, Outcome};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Deserialize)]
pub struct Recorded {
    pub stable: Stable,
    #[serde(default)]
    pub evidence: BTreeMap<String, Evidence>,
    #[serde(default)]
    pub measurements: BTreeMap<String, Value>,
    #[serde(default)]
    pub environment: BTreeMap<String, Value>,
    /// All of it as it was written, also what this program does not know.
    #[serde(skip)]
    pub whole: Value,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Stable {
    pub scenario: ScenarioName,
    pub seed: u64,
    #[serde(default)]
    pub settings: Vec<String>,
    #[serde(default)]
    pub mutant: Option<String>,
    pub verdict: Outcome,
    pub cases: BTreeMap<Name, Case>,
    #[serde(default)]
    pub unfinished: Vec<Name>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ScenarioName {
    pub name: Name,
    pub hash: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub verdict: Outcome,
    /// Absent in results of earlier programs.
    #[serde(default)]
    pub lock: Option<LockOutcome>,
    #[serde(default)]
    pub fence: Option<String>,
    #[serde(default)]
    pub findings: Vec<Finding>,
    #[serde(default)]
    pub doubts: Vec<String>,
    /// Only of cases in which they are the same in every good run.
    #[serde(default)]
    pub violations: Option<BTreeMap<String, u64>>,
    #[serde(default)]
    pub excused: Option<BTreeMap<String, u64>>,
    #[serde(default)]
    pub promises: Option<BTreeMap<String, String>>,
    #[serde(default)]
    pub counts: Option<BTreeMap<String, u64>>,
    #[serde(default)]
    pub explanation: Option<Value>,
    #[serde(default)]
    pub last_writer: Option<Value>,
    #[serde(default)]
    pub faults: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Finding {
    pub what: String,
    pub expected: String,
    pub held: bool,
    #[serde(default)]
    pub found: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Evidence {
    #[serde(default)]
    pub violations: Option<Vec<Violation>>,
    #[serde(default)]
    pub excused: Option<Vec<Violation>>,
    #[serde(default)]
    pub promises: Option<BTreeMap<String, Became>>,
}

/// What became of a promise.
#[derive(Clone, Debug, Deserialize)]
pub struct Became {
    pub outcome: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Violation {
    pub kind: String,
}

/// Why a text is not a result that can be read.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum NotAResult {
    #[error("it ends in the middle (line {line}): it was truncated, or is still being written")]
    Truncated { line: usize },
    #[error("it is not JSON: {0}")]
    NotJson(String),
    #[error("it is not a result of fencepost: it has no schema_version")]
    Foreign,
    #[error(
        "it has schema version {0}, which is newer than this program's {SCHEMA_VERSION}: use the fencepost that wrote it, or a later one"
    )]
    Newer(u64),
    #[error(
        "it has schema version {0}, which no fencepost ever wrote; this one reads {SCHEMA_VERSION}"
    )]
    Unknown(String),
    #[error("it has schema version {SCHEMA_VERSION}, but not what belongs to it: {0}")]
    Broken(String),
}

pub fn read(bytes: &[u8]) -> Result<Recorded, NotAResult> {
    let not_json = |error: serde_json::Error| match error.is_eof() {
        true => NotAResult::Truncated { line: error.line() },
        false => NotAResult::NotJson(shown::line(&error.to_string()).into_owned()),
    };
    let whole: Value = serde_json::from_slice(bytes).map_err(not_json)?;
    match whole.get("schema_version") {
        None => return Err(NotAResult::Foreign),
        Some(version) => match version.as_u64() {
            Some(version) if version == u64::from(SCHEMA_VERSION) => {}
            Some(newer) if newer > u64::from(SCHEMA_VERSION) => {
                return Err(NotAResult::Newer(newer));
            }
            _ => return Err(NotAResult::Unknown(version.to_string())),
        },
    }
    // From the bytes once more, because only these have lines to point to.
    let recorded = serde_json::from_slice(bytes);
    // An error quotes what it cannot read.
    let broken = |error: serde_json::Error| shown::line(&error.to_string()).into_owned();
    let recorded = recorded.map_err(|error| NotAResult::Broken(broken(error)))?;
    Ok(Recorded { whole, ..recorded })
}

impl Recorded {
    /// Violations by kind, and whether the counts are the same in every good run.
    /// `None` where the result says nothing about them.
    pub fn violations(&self, case: &str) -> Option<(BTreeMap<String, u64>, bool)> {
        if let Some(counted) = &self.stable.cases.get(case)?.violations {
            return Some((counted.clone(), true));
        }
        let listed = self.evidence.get(case)?.violations.as_ref()?;
        Some((by_kind(listed), false))
    }

    /// The same of breaks that a proven fault excuses.
    pub fn excused(&self, case: &str) -> Option<(BTreeMap<String, u64>, bool)> {
        if let Some(counted) = &self.stable.cases.get(case)?.excused {
            return Some((counted.clone(), true));
        }
        let listed = self.evidence.get(case)?.excused.as_ref()?;
        Some((by_kind(listed), false))
    }

    /// What became of each promise of the lock, and whether that is the same in every good run.
    pub fn promises(&self, case: &str) -> Option<(BTreeMap<String, String>, bool)> {
        if let Some(kept) = &self.stable.cases.get(case)?.promises {
            return Some((kept.clone(), true));
        }
        let became = self.evidence.get(case)?.promises.as_ref()?.iter();
        let became = became.map(|(promise, became)| (promise.clone(), became.outcome.clone()));
        Some((became.collect(), false))
    }
}

fn by_kind(violations: &[Violation]) -> BTreeMap<String, u64> {
    let mut by_kind = BTreeMap::new();
    for violation in violations {
        *by_kind.entry(violation.kind.clone()).or_default() += 1;
    }
    by_kind
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::json::result;
    use crate::report::made_up::{case, run};
    use serde_json::json;

    #[test]
    fn what_is_not_a_result_is_said() {
        let good = result(&run(vec![case("fenced", None)])).to_string();
        let newer = good.replace("\"schema_version\":1", "\"schema_version\":2");
        let odd = good.replace("\"schema_version\":1", "\"schema_version\":\"one\"");
        let broken = good.replace("\"as_expected\"", "\"splendid\"");
        let elsewhere = good.replace("\"fenced\"", "\"../../x\"");
        let no_verdict = r#"{"schema_version": 1, "stable": {"scenario": {"name": "x", "hash": ""}, "seed": 1, "cases": {}}}"#;
        let cases = [
            (&good[..good.len() / 2], "ends in the middle"),
            ("", "ends in the middle"),
            ("name: yaml", "not JSON"),
            ("{\"a\": 1}", "no schema_version"),
            ("[1, 2]", "no schema_version"),
            (&newer, "newer than this program's 1"),
            (&odd, "no fencepost ever wrote"),
            (&broken, "splendid"),
            (no_verdict, "missing field `verdict`"),
            (&elsewhere, "\"../../x\" is not a name"),
        ];
        for (text, said) in cases {
            let error = read(text.as_bytes()).expect_err(text).to_string();
            assert!(error.contains(said), "{said:?} is not in {error:?}");
        }
    }

    #[test]
    fn fields_of_later_versions_are_passed_over() {
        let mut value = result(&run(vec![case("fenced", None)]));
        value["stable"]["cases"]["fenced"]["mood"] = json!("good");
        value["later"] = json!([1]);
        assert!(read(value.to_string().as_bytes()).is_ok());
    }
}
