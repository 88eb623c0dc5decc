//! What came out of a run: the part of its result that is the same in every good run.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    AsExpected,
    NotAsExpected,
    /// A fault was not proven to bite, or the record is incomplete.
    Inconclusive,
}

#[derive(Clone, Debug)]
pub struct Report {
    pub verdict: Verdict,
    /// The folder with the evidence and the page.
    pub folder: PathBuf,
    pub cases: BTreeMap<String, Case>,
    /// Cases that were to run and have no result.
    pub unfinished: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    pub verdict: Verdict,
    /// Whether the lock kept its promises: `kept`, `broken`, or a reason why nobody knows.
    pub lock: String,
    /// How often each kind of violation was seen.
    pub violations: BTreeMap<String, u64>,
    pub counts: BTreeMap<String, u64>,
    /// What each promise of the lock came to.
    pub promises: BTreeMap<String, String>,
    findings: Vec<Value>,
    doubts: Vec<Value>,
}

impl Case {
    /// Returns a count such as `stale_rejections`; 0 for one that there is not.
    pub fn count(&self, name: &str) -> u64 {
        self.counts.get(name).copied().unwrap_or(0)
    }
}

#[derive(Deserialize)]
struct Document {
    runs: Vec<Run>,
}

#[derive(Deserialize)]
struct Run {
    folder: PathBuf,
    stable: Stable,
}

#[derive(Deserialize)]
struct Stable {
    verdict: Verdict,
    cases: BTreeMap<String, Case>,
    unfinished: Vec<String>,
}

impl Report {
    /// Reads what `fencepost run --format json` prints; else returns its error in words.
    pub(crate) fn read(document: &[u8]) -> Result<Report, String> {
        let value: Value = serde_json::from_slice(document)
            .map_err(|error| format!("it printed no document: {error}"))?;
        if let Some(error) = value.get("error").and_then(Value::as_str) {
            return Err(error.to_owned());
        }
        let document: Document = serde_json::from_value(value).map_err(|error| {
            format!("its document is of another version: {error}; use the same version of both")
        })?;
        let run = document.runs.into_iter().next();
        let run = run.ok_or("its document has no run")?;
        Ok(Report {
            verdict: run.stable.verdict,
            folder: run.folder,
            cases: run.stable.cases,
            unfinished: run.stable.unfinished,
        })
    }

    /// Fails the test, with the reasons, unless everything came out as the scenario says.
    #[track_caller]
    pub fn assert_as_expected(&self) {
        assert!(self.verdict == Verdict::AsExpected, "{self}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:?}; evidence in {}",
            self.verdict,
            self.folder.display()
        )?;
        for (name, case) in &self.cases {
            writeln!(f, "  {name}: {:?}, lock {}", case.verdict, case.lock)?;
            let missed = |finding: &&Value| finding["held"] == Value::Bool(false);
            for finding in case.findings.iter().filter(missed) {
                let (what, expected, found) =
                    (&finding["what"], &finding["expected"], &finding["found"]);
                writeln!(f, "    {what}: expected {expected}, found {found}")?;
            }
            for doubt in &case.doubts {
                writeln!(f, "    doubt: {doubt}")?;
            }
        }
        for name in &self.unfinished {
            writeln!(f, "  {name}: unfinished")?;
        }
        Ok(())
    }
}
