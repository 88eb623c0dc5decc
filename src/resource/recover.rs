//! Reading the log back at start, with an end that a crash may have torn.
//!
//! Only a batch that was never acknowledged can be torn. So what is cut off
//! must be no longer than a batch can be, and no new batch may begin in it:
//! a batch begins only after the one before it was synced.

use super::limits::{MAX_BATCH_BYTES, MAX_ROW_BYTES};
use super::log::{LogError, failed};
use crate::model::{LogRow, RowOutcome};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The part of the log that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sound {
    pub bytes: u64,
    pub rows: u64,
}

/// Hands every whole row to `each`. Returns what is whole, and how many bytes
/// behind it are to be cut off.
pub(super) fn read_back(
    file: &File,
    path: &Path,
    mut each: impl FnMut(LogRow),
) -> Result<(Sound, u64), LogError> {
    let read_failed = || failed("read", path);
    let length = file.metadata().map_err(read_failed())?.len();
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut sound = Sound::default();
    while sound.bytes < length {
        line.clear();
        // One byte of indentation, and one that shows a line to be too long.
        (&mut reader)
            .take(MAX_ROW_BYTES as u64 + 2)
            .read_until(b'\n', &mut line)
            .map_err(read_failed())?;
        match parse(&line, sound.rows + 1) {
            Ok(row) => each(row),
            Err(problem) => {
                let cut_bytes = length - sound.bytes;
                let torn = cut_bytes <= MAX_BATCH_BYTES as u64
                    && !batch_begins_behind(file, sound.bytes).map_err(read_failed())?;
                if torn {
                    return Ok((sound, cut_bytes));
                }
                return Err(LogError::Corrupt {
                    path: path.to_owned(),
                    line: sound.rows + 1,
                    problem,
                    cut_bytes,
                });
            }
        }
        sound.bytes += line.len() as u64;
        sound.rows += 1;
    }
    Ok((sound, 0))
}

fn parse(line: &[u8], expected_seq: u64) -> Result<LogRow, String> {
    if line.last() != Some(&b'\n') {
        return Err("the row is not complete".into());
    }
    let row: LogRow =
        serde_json::from_slice(line).map_err(|error| format!("this is no row: {error}"))?;
    if row.seq != expected_seq {
        return Err(format!(
            "row {expected_seq} should be here, not {}",
            row.seq
        ));
    }
    if row.outcome == RowOutcome::Accepted && row.value.is_none() {
        return Err("an accepted row has no value".into());
    }
    Ok(row)
}

/// Whether, behind the line at `from`, a line starts at the margin.
fn batch_begins_behind(mut file: &File, from: u64) -> io::Result<bool> {
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(MAX_BATCH_BYTES as u64).read_to_end(&mut tail)?;
    Ok(tail
        .split(|&byte| byte == b'\n')
        .skip(1)
        .any(|line| line.first().is_some_and(|&byte| byte != b' ')))
}

#[cfg(test)]
mod tests {
    use super::super::log::{Batch, FILE_NAME, Log};
    use super::*;
    use crate::model::RowValue;
    use std::fs;

    fn row(seq: u64, value: &str) -> LogRow {
        LogRow {
            seq,
            at_ns: seq,
            key: "k".into(),
            outcome: RowOutcome::Accepted,
            token: None,
            token_seq: 0,
            seen: None,
            owner: None,
            based_on: None,
            body: None,
            value: Some(RowValue::Text(value.into())),
        }
    }

    fn append(dir: &Path, rows: &[LogRow]) {
        let mut batch = Batch::default();
        rows.iter().for_each(|row| batch.push(row));
        Log::open(dir, |_| ()).unwrap().write(&batch).unwrap();
    }

    fn reopen(dir: &Path) -> Result<Vec<u64>, LogError> {
        let mut seqs = Vec::new();
        Log::open(dir, |row| seqs.push(row.seq)).map(|_| seqs)
    }

    #[test]
    fn a_last_row_torn_at_any_byte_is_cut_and_the_log_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        append(dir.path(), &[row(1, "a")]);
        let kept = fs::read(&path).unwrap();
        append(dir.path(), &[row(2, "né\u{1}")]);
        let whole = fs::read(&path).unwrap();
        for length in kept.len()..whole.len() {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(reopen(dir.path()).unwrap(), [1], "torn at {length}");
            assert_eq!(fs::read(&path).unwrap(), kept);
            append(dir.path(), &[row(2, "b")]);
            assert_eq!(reopen(dir.path()).unwrap(), [1, 2]);
        }
    }

    #[test]
    fn a_torn_batch_keeps_its_whole_rows_and_may_have_holes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        append(dir.path(), &[row(1, "a")]);
        append(dir.path(), &[row(2, "b"), row(3, "c"), row(4, "d")]);
        let mut bytes = fs::read(&path).unwrap();
        let hole = bytes.windows(3).position(|w| w == b"\"c\"").unwrap();
        bytes[hole..hole + 3].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(reopen(dir.path()).unwrap(), [1, 2]);
    }

    #[test]
    fn damage_with_an_acknowledged_batch_behind_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        for seq in 1..=3 {
            append(dir.path(), &[row(seq, "a")]);
        }
        let good = fs::read(&path).unwrap();
        let second_row = good.len() / 3;
        let mut bad = good.clone();
        bad[second_row + 3] = b'#';
        fs::write(&path, &bad).unwrap();
        let error = reopen(dir.path()).unwrap_err().to_string();
        assert!(error.contains("log.jsonl:2: this is no row"), "{error}");
        assert!(error.contains("sed -i '2,$d'"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), bad, "a refused log is left alone");

        // A row that is missing altogether is damage as well.
        fs::write(
            &path,
            [&good[..second_row], &good[2 * second_row..]].concat(),
        )
        .unwrap();
        assert_eq!(
            reopen(dir.path()).unwrap(),
            [1],
            "at the very end nobody can tell"
        );
        fs::write(&path, &good[second_row..]).unwrap();
        let error = reopen(dir.path()).unwrap_err().to_string();
        assert!(error.contains("row 1 should be here, not 2"), "{error}");
    }

    #[test]
    fn more_than_a_batch_is_never_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        for (length, torn) in [(MAX_BATCH_BYTES, true), (MAX_BATCH_BYTES + 1, false)] {
            fs::write(&path, vec![0; length]).unwrap();
            assert_eq!(reopen(dir.path()).is_ok(), torn, "{length} bytes");
        }
    }

    #[test]
    fn an_accepted_row_without_a_value_is_damage() {
        let without = LogRow {
            value: None,
            ..row(1, "")
        };
        let line = format!("{}\n", serde_json::to_string(&without).unwrap());
        assert!(parse(line.as_bytes(), 1).is_err());
    }
}
