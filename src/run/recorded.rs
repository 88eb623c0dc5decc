//! Reading a recorded case back: for the judge, right after the run or years later.

use super::evidence::{ACCEPTED, FAULTS, HISTORY, LOCKS, NOT_COLLECTED, NOTES};
use super::folder::FolderError;
use crate::model::{CaseNotes, CaseRecord};
use serde::de::DeserializeOwned;
use std::fs;
use std::io;
use std::path::Path;

/// Reads a case back. A run that was killed has no notes, and says so as a gap.
pub fn read_case(folder: &Path) -> Result<(CaseRecord, CaseNotes), FolderError> {
    let notes_path = folder.join(NOTES);
    let notes = match fs::read(&notes_path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| FolderError::Row {
            path: notes_path,
            line: error.line(),
            reason: error.to_string(),
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => CaseNotes {
            gaps: vec![NOT_COLLECTED.to_owned()],
            ..CaseNotes::default()
        },
        Err(source) => {
            return Err(FolderError::Read {
                path: notes_path,
                source,
            });
        }
    };
    let mut gaps = notes.gaps.clone();
    let record = CaseRecord {
        workers: notes.workers.clone(),
        history: read_rows(&folder.join(HISTORY), &mut gaps)?,
        log: read_rows(&folder.join(ACCEPTED), &mut gaps)?,
        faults: read_rows(&folder.join(FAULTS), &mut gaps)?,
        locks: read_rows(&folder.join(LOCKS), &mut gaps)?,
        values: notes.values.clone(),
        resource: notes.resource.clone(),
        refusals_counted: notes.stale_rejections_metric,
        settled: notes.settled,
        without_writes: notes.is_without_writes(),
        gaps,
    };
    Ok((record, notes))
}

/// A last line without its end is what a killed run leaves: a gap, no error.
pub fn read_rows<T: DeserializeOwned>(
    path: &Path,
    gaps: &mut Vec<String>,
) -> Result<Vec<T>, FolderError> {
    let text = fs::read_to_string(path).map_err(|source| FolderError::Read {
        path: path.to_owned(),
        source,
    })?;
    let mut rows = Vec::new();
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let Some(whole) = line.strip_suffix('\n') else {
            gaps.push(format!("{} ends in the middle of a row", path.display()));
            break;
        };
        rows.push(
            serde_json::from_str(whole).map_err(|error| FolderError::Row {
                path: path.to_owned(),
                line: index + 1,
                reason: error.to_string(),
            })?,
        );
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_row_is_a_gap_and_a_wrong_row_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let mut gaps = Vec::new();
        fs::write(&path, "1\n2\n3").unwrap();
        let rows: Vec<u32> = read_rows(&path, &mut gaps).unwrap();
        assert_eq!(rows, [1, 2]);
        assert!(gaps[0].contains("in the middle of a row"));
        fs::write(&path, "1\nnonsense\n").unwrap();
        let error = read_rows::<u32>(&path, &mut gaps).unwrap_err().to_string();
        assert!(error.contains("x.jsonl:2:"), "{error}");
    }
}
