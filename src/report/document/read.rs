//! Reads a `result.json`, or says why it is not one.

use super::*;

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

pub fn read(bytes: &[u8]) -> Result<ResultDocument, NotAResult> {
    // The error quotes the text that it cannot read.
    let said = |error: serde_json::Error| shown::line(&error.to_string()).into_owned();
    let whole: Value = serde_json::from_slice(bytes).map_err(|error| match error.is_eof() {
        true => NotAResult::Truncated { line: error.line() },
        false => NotAResult::NotJson(said(error)),
    })?;
    let version = whole.get("schema_version").ok_or(NotAResult::Foreign)?;
    match version.as_u64() {
        Some(version) if version == u64::from(SCHEMA_VERSION) => {}
        Some(newer) if newer > u64::from(SCHEMA_VERSION) => return Err(NotAResult::Newer(newer)),
        _ => return Err(NotAResult::Unknown(version.to_string())),
    }
    // The bytes are parsed again, because only then an error has a line number.
    serde_json::from_slice(bytes).map_err(|error| NotAResult::Broken(said(error)))
}

impl ResultDocument {
    /// Returns violations by kind, and whether the counts are the same in every good run.
    pub fn violations(&self, case: &str) -> Option<(BTreeMap<String, u64>, bool)> {
        let counted = self.stable.cases.get(case)?.violations.clone();
        stable_or(counted, || {
            Some(by_kind(&self.evidence.get(case)?.violations))
        })
    }

    /// Returns the same for breaks that a proven fault excuses.
    pub fn excused(&self, case: &str) -> Option<(BTreeMap<String, u64>, bool)> {
        let counted = self.stable.cases.get(case)?.excused.clone();
        stable_or(counted, || Some(by_kind(&self.evidence.get(case)?.excused)))
    }

    /// Returns the outcome of each promise of the lock, and whether it is the same in every
    /// good run.
    pub fn promises(&self, case: &str) -> Option<(BTreeMap<String, String>, bool)> {
        let kept = self.stable.cases.get(case)?.promises.clone();
        stable_or(kept, || Some(words(&self.evidence.get(case)?.promises)))
    }
}

fn stable_or<T>(stable: Option<T>, evidence: impl FnOnce() -> Option<T>) -> Option<(T, bool)> {
    let is_stable = stable.is_some();
    Some((stable.or_else(evidence)?, is_stable))
}

fn by_kind(violations: &[Value]) -> BTreeMap<String, u64> {
    let mut by_kind = BTreeMap::new();
    for kind in violations.iter().filter_map(|one| one["kind"].as_str()) {
        *by_kind.entry(kind.to_owned()).or_default() += 1;
    }
    by_kind
}
