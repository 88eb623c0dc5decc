//! Reads a recorded case back for the judge, right after the run or years later.

use super::evidence::{ACCEPTED, FAULTS, HISTORY, LOCKS, NOT_COLLECTED, NOTES};
use super::folder::read_failed;
use super::*;
use crate::model::{CasePlan, CaseRecord, FaultRow, Gap, LockEvent, Log};
use bounded_io::files::Links;
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, Read};

/// The longest row. The largest body that the resource accepts fits in it, escaped.
const LONGEST_ROW: u64 = 1 << 20;

/// Reads a case back. A run that was killed has no notes, which is a gap.
pub fn read_case(folder: &Path, plan: CasePlan) -> Result<(CaseRecord, CaseNotes), FolderError> {
    let notes_path = folder.join(NOTES);
    let notes = match files::read(&notes_path, Links::Refuse, files::DOCUMENT) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| FolderError::Row {
            path: notes_path,
            line: error.line(),
            reason: error.to_string(),
        })?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => CaseNotes {
            gaps: vec![NOT_COLLECTED.to_owned().into()],
            ..CaseNotes::default()
        },
        Err(error) => return Err(read_failed(&notes_path)(error)),
    };
    let mut gaps = notes.gaps.clone();
    let rows = Rows {
        history: read_rows(&folder.join(HISTORY), &mut gaps)?,
        log: read_log(&folder.join(ACCEPTED), &mut gaps)?,
        faults: read_rows(&folder.join(FAULTS), &mut gaps)?,
        locks: read_rows(&folder.join(LOCKS), &mut gaps)?,
    };
    Ok((rows.record(plan, &notes, gaps), notes))
}

/// The rows of a case.
#[derive(Default)]
pub struct Rows {
    pub history: Vec<Event>,
    pub log: Log,
    pub faults: Vec<FaultRow>,
    pub locks: Vec<LockEvent>,
}

impl Rows {
    /// Adds what the harness noted.
    pub fn record(self, plan: CasePlan, notes: &CaseNotes, gaps: Vec<Gap>) -> CaseRecord {
        CaseRecord {
            plan,
            workers: notes.workers.clone(),
            ended_ns: notes.ended_ns.or_else(|| ended_ns(notes, &self.history)),
            history: self.history,
            log: self.log,
            faults: self.faults,
            locks: self.locks,
            lock_servers: notes.versions.keys().cloned().collect(),
            values: notes.values.clone(),
            resource: notes.resource.clone(),
            refusals_counted: notes.stale_rejections_metric,
            log_rows: notes.log_rows,
            log_has_gaps: notes.log_has_gaps,
            settled: notes.settled,
            without_writes: notes.is_without_writes(),
            gaps,
        }
    }
}

/// Returns the earliest possible end of a timeline whose record does not say when it ended: its
/// workers are ready before it begins.
fn ended_ns(notes: &CaseNotes, history: &[Event]) -> Option<u64> {
    let lasted_ms = *notes.measurements.get("scenario_ms")?;
    let first_ns = history.iter().map(|event| event.at_ns).min()?;
    Some(first_ns.saturating_add(lasted_ms.saturating_mul(1_000_000)))
}

/// Reads rows. A killed run leaves a last line without its end: that is a gap, not an error.
pub fn read_rows<T: DeserializeOwned>(
    path: &Path,
    gaps: &mut Vec<Gap>,
) -> Result<Vec<T>, FolderError> {
    let mut rows = Vec::new();
    let mut bad = None;
    let mut is_torn = false;
    read_lines(path, |line| {
        match line.strip_suffix(b"\n").map(serde_json::from_slice) {
            Some(Ok(row)) => rows.push(row),
            Some(Err(error)) => bad = Some(error.to_string()),
            None => is_torn = true,
        }
        bad.is_none()
    })
    .map_err(read_failed(path))?;
    if let Some(reason) = bad {
        return Err(FolderError::Row {
            path: path.to_owned(),
            line: rows.len() + 1,
            reason,
        });
    }
    if is_torn {
        gaps.push(torn(path));
    }
    Ok(rows)
}

/// Reads the lines of a file in the folder of a run, each with its end, as long as the caller
/// wants more. A file without ends of lines is not read whole.
pub fn read_lines(path: &Path, mut each: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
    let file = files::open(path, Links::Refuse)?;
    let too_large = |what: &str, bytes: u64| {
        let why = format!("{what} has more than {bytes} bytes");
        Err(io::Error::new(io::ErrorKind::FileTooLarge, why))
    };
    if file.metadata()?.len() > files::ROWS {
        return too_large("it", files::ROWS);
    }
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut read = 0;
    loop {
        line.clear();
        let length = reader
            .by_ref()
            .take(LONGEST_ROW)
            .read_until(b'\n', &mut line)? as u64;
        read += length;
        if length == LONGEST_ROW && !line.ends_with(b"\n") {
            return too_large("a row", LONGEST_ROW);
        }
        // The file may grow while it is read.
        if read > files::ROWS {
            return too_large("it", files::ROWS);
        }
        if length == 0 || !each(&line) {
            return Ok(());
        }
    }
}

/// Reads the log as [`read_rows`] does; it is the one file that may be long.
fn read_log(path: &Path, gaps: &mut Vec<Gap>) -> Result<Log, FolderError> {
    let mut text = Vec::new();
    read_lines(path, |line| {
        text.extend_from_slice(line);
        true
    })
    .map_err(read_failed(path))?;
    let file = Log::read_jsonl(text).map_err(|bad| FolderError::Row {
        path: path.to_owned(),
        line: bad.line,
        reason: bad.reason,
    })?;
    if file.torn {
        gaps.push(torn(path));
    }
    Ok(file.log)
}

fn torn(path: &Path) -> Gap {
    format!("{} ends in the middle of a row", path.display()).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::LogRow;
    use std::fs;

    #[test]
    fn a_torn_last_row_is_a_gap_and_a_wrong_row_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.jsonl");
        let mut gaps = Vec::new();
        fs::write(&path, "1\n2\n3").unwrap();
        let rows: Vec<u32> = read_rows(&path, &mut gaps).unwrap();
        assert_eq!(rows, [1, 2]);
        assert!(gaps[0].text.contains("in the middle of a row"));
        fs::write(&path, "1\nnonsense\n").unwrap();
        let error = read_rows::<u32>(&path, &mut gaps).unwrap_err().to_string();
        assert!(error.contains("x.jsonl:2:"), "{error}");
    }

    #[test]
    fn a_log_is_read_like_any_other_file_of_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("accepted.jsonl");
        let row = r#"{"seq":1,"at_ns":1,"key":"k","outcome":"accepted"}"#;
        for text in [
            format!("{row}\n{row}\n"),
            format!("{row}\n{row}"),
            format!("{row}\nnonsense\n{row}\n"),
        ] {
            fs::write(&path, text).unwrap();
            let (mut gaps, mut log_gaps) = (Vec::new(), Vec::new());
            let rows = read_rows::<LogRow>(&path, &mut gaps);
            let log = read_log(&path, &mut log_gaps);
            let rows = rows.map_err(|error| error.to_string());
            let log = log.map_err(|error| error.to_string());
            let written = |log: Log| log.rows.iter().map(|row| log.written(row)).collect();
            assert_eq!(log.map(written), rows);
            assert_eq!(log_gaps, gaps);
        }
    }
}
