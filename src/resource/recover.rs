//! Reading the log back at start, with an end that a crash may have torn.
//!
//! Only a batch that was never acknowledged can be torn: it is behind the mark, no
//! longer than a batch can be, and no new batch begins in it, because a batch begins
//! only after the one before it was synced. Everything else is damage, and refused:
//! also where there is no mark, since nobody can tell then.

use super::limits::{MAX_BATCH_BYTES, MAX_ROW_BYTES};
use super::log::{LogError, failed};
use super::mark::Acknowledged;
use crate::model::{LogRow, RowOutcome};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The part of the log that is whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sound {
    pub bytes: u64,
    pub rows: u64,
}

pub(super) struct Recovered {
    pub sound: Sound,
    /// Of all that is whole.
    pub hash: Sha256,
    /// To be cut off behind it.
    pub torn_bytes: u64,
}

/// Hands every whole row to `each`.
pub(super) fn read_back(
    file: &File,
    path: &Path,
    acknowledged: Option<Acknowledged>,
    mut each: impl FnMut(LogRow),
) -> Result<Recovered, LogError> {
    let read_failed = || failed("read", path);
    let length = file.metadata().map_err(read_failed())?.len();
    let marked_bytes = acknowledged.as_ref().map_or(0, |mark| mark.bytes);
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    let mut sound = Sound::default();
    let mut hash = Sha256::new();
    let mut at_the_mark = Acknowledged::new(sound, &hash);
    let mut torn_bytes = 0;
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
                let tail = Tail {
                    begins: &line,
                    behind: sound,
                    bytes: length - sound.bytes,
                };
                let is_behind_the_mark = sound.bytes >= marked_bytes;
                let may_be_torn = acknowledged.is_some() && is_behind_the_mark;
                if may_be_torn && tail.is_torn(file).map_err(read_failed())? {
                    torn_bytes = tail.bytes;
                    break;
                }
                return Err(tail.refused(path, problem, !is_behind_the_mark));
            }
        }
        hash.update(&line);
        sound.bytes += line.len() as u64;
        sound.rows += 1;
        if sound.bytes == marked_bytes {
            at_the_mark = Acknowledged::new(sound, &hash);
        }
    }
    if let Some(mark) = acknowledged
        && mark != at_the_mark
    {
        return Err(LogError::NotAsAcknowledged {
            path: path.to_owned(),
            rows: mark.rows,
            problem: match sound.bytes < mark.bytes {
                true => "it is shorter",
                false => "its bytes have another hash",
            },
        });
    }
    Ok(Recovered {
        sound,
        hash,
        torn_bytes,
    })
}

/// What begins with a line that is not a row.
struct Tail<'a> {
    begins: &'a [u8],
    behind: Sound,
    bytes: u64,
}

impl Tail<'_> {
    fn is_torn(&self, file: &File) -> io::Result<bool> {
        Ok(self.bytes <= MAX_BATCH_BYTES as u64
            && self.is_of_a_row()
            && !batch_begins_behind(file, self.behind.bytes)?)
    }

    /// What the system never wrote reads as zeros.
    fn is_of_a_row(&self) -> bool {
        let begins = self.begins.strip_prefix(b" ").unwrap_or(self.begins);
        let row = format!("{{\"seq\":{},", self.behind.rows + 1);
        let common = begins.len().min(row.len());
        begins[..common] == row.as_bytes()[..common] || begins.iter().all(|&byte| byte == 0)
    }

    fn refused(&self, path: &Path, problem: String, is_acknowledged: bool) -> LogError {
        let path = path.to_owned();
        match is_acknowledged || self.behind.rows > 0 || self.is_of_a_row() {
            true => LogError::Corrupt {
                path,
                line: self.behind.rows + 1,
                problem,
                cut_bytes: self.bytes,
                certainly: is_acknowledged,
            },
            false => LogError::Foreign { path, problem },
        }
    }
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
    use super::super::mark;
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

    fn batch(rows: &[LogRow]) -> Batch {
        let mut batch = Batch::default();
        rows.iter().for_each(|row| batch.push(row));
        batch
    }

    /// Written and not synced: nobody was answered.
    fn write(dir: &Path, rows: &[LogRow]) {
        Log::open(dir, |_| ()).unwrap().write(&batch(rows)).unwrap();
    }

    /// Written, synced and marked: everybody may have been answered.
    fn commit(dir: &Path, rows: &[LogRow]) {
        let mut log = Log::open(dir, |_| ()).unwrap();
        log.write(&batch(rows)).unwrap();
        log.sync(&batch(rows)).unwrap();
    }

    fn reopen(dir: &Path) -> Result<Vec<u64>, LogError> {
        let mut seqs = Vec::new();
        Log::open(dir, |row| seqs.push(row.seq)).map(|_| seqs)
    }

    /// The error, and nothing was changed.
    fn refused(dir: &Path) -> String {
        let path = dir.join(FILE_NAME);
        let before = fs::read(&path).unwrap();
        let error = reopen(dir).unwrap_err().to_string();
        assert_eq!(fs::read(&path).unwrap(), before, "a refused log is left");
        error
    }

    #[test]
    fn a_last_row_torn_at_any_byte_is_cut_and_the_log_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mark = dir.path().join(mark::FILE_NAME);
        for first in [0, 1] {
            if first == 1 {
                commit(dir.path(), &[row(1, "a")]);
            }
            let kept = fs::read(&path).unwrap_or_default();
            write(dir.path(), &[row(first + 1, "né\u{1}")]);
            let whole = fs::read(&path).unwrap();
            let marked = fs::read(&mark).unwrap();
            for length in kept.len()..whole.len() {
                fs::write(&path, &whole[..length]).unwrap();
                assert_eq!(reopen(dir.path()).unwrap().len() as u64, first, "{length}");
                assert_eq!(fs::read(&path).unwrap(), kept);
                write(dir.path(), &[row(first + 1, "b")]);
                assert_eq!(reopen(dir.path()).unwrap().len() as u64, first + 1);
                fs::write(&mark, &marked).unwrap();
            }
            fs::write(&path, &kept).unwrap();
        }
    }

    #[test]
    fn a_torn_batch_keeps_its_whole_rows_and_may_have_holes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        commit(dir.path(), &[row(1, "a")]);
        write(dir.path(), &[row(2, "b"), row(3, "c"), row(4, "d")]);
        let mut bytes = fs::read(&path).unwrap();
        let hole = bytes.windows(3).position(|w| w == b"\"c\"").unwrap();
        bytes[hole..hole + 3].fill(0);
        fs::write(&path, &bytes).unwrap();
        assert_eq!(reopen(dir.path()).unwrap(), [1, 2]);
    }

    #[test]
    fn an_acknowledged_row_is_never_cut_off_however_it_is_damaged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        for seq in 1..=3 {
            commit(dir.path(), &[row(seq, "a")]);
        }
        let good = fs::read_to_string(&path).unwrap();
        let last = 2 * good.len() / 3;

        let bad = good[..last].to_owned() + &good[last..].replace("accepted", "accepteX");
        fs::write(&path, bad).unwrap();
        let error = refused(dir.path());
        assert!(error.contains("log.jsonl:3: this is no row"), "{error}");
        assert!(error.contains("on hold rows that were ack"), "{error}");
        assert!(error.contains("sed -i '3,$d'"), "{error}");

        // What is still a row, and what is missing at the very end.
        fs::write(&path, good.replace("\"a\"", "\"b\"")).unwrap();
        let error = refused(dir.path());
        assert!(error.contains("3 rows that were ack"), "{error}");
        assert!(error.contains("another hash"), "{error}");
        for length in [0, last, good.len() - 1] {
            fs::write(&path, &good[..length]).unwrap();
            refused(dir.path());
        }

        // A person decides: without the mark it is taken as it is.
        fs::write(&path, &good[..last]).unwrap();
        fs::remove_file(dir.path().join(mark::FILE_NAME)).unwrap();
        assert_eq!(reopen(dir.path()).unwrap(), [1, 2]);
    }

    #[test]
    fn a_mark_that_a_power_failure_left_behind_keeps_what_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let mark = dir.path().join(mark::FILE_NAME);
        commit(dir.path(), &[row(1, "a")]);
        let old = fs::read(&mark).unwrap();
        for seq in 2..=3 {
            commit(dir.path(), &[row(seq, "a")]);
        }
        let good = fs::read_to_string(&path).unwrap();
        fs::write(&mark, &old).unwrap();
        assert_eq!(reopen(dir.path()).unwrap(), [1, 2, 3]);

        // Row 3 begins a batch, so row 2 was synced.
        fs::write(&mark, &old).unwrap();
        fs::write(&path, good.replace("\"seq\":2,\"", "\"seq\":2,#")).unwrap();
        let error = refused(dir.path());
        assert!(error.contains("log.jsonl:2: this is no row"), "{error}");
        fs::write(&mark, "{").unwrap();
        assert!(refused(dir.path()).contains("log.mark does not say"));
    }

    #[test]
    fn a_log_of_an_older_program_is_read_and_never_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        let lines = [row(1, "a"), row(2, "b")].map(|row| serde_json::to_string(&row).unwrap());
        let old = lines.join("\n") + "\n";
        fs::write(&path, &old[..old.len() - 1]).unwrap();
        let error = refused(dir.path());
        assert!(error.contains("may hold rows that were ack"), "{error}");
        fs::write(&path, &old).unwrap();
        assert_eq!(reopen(dir.path()).unwrap(), [1, 2]);
        commit(dir.path(), &[row(3, "c")]);
        assert_eq!(reopen(dir.path()).unwrap(), [1, 2, 3]);
    }

    #[test]
    fn a_file_that_is_not_a_log_is_left_alone() {
        for is_marked in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            if is_marked {
                reopen(dir.path()).unwrap();
            }
            for content in [
                "somebody else's only line\n",
                "{\"seq\":\"mine\"}",
                "{}\n",
                "x",
            ] {
                fs::write(dir.path().join(FILE_NAME), content).unwrap();
                let error = refused(dir.path());
                assert!(error.contains("is not a log of the resource"), "{error}");
            }
        }
    }

    #[test]
    fn a_row_that_is_missing_is_damage() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(FILE_NAME);
        for seq in 1..=3 {
            commit(dir.path(), &[row(seq, "a")]);
        }
        let good = fs::read(&path).unwrap();
        let third = good.len() / 3;
        for (left, problem) in [
            ([&good[..third], &good[2 * third..]].concat(), "log.jsonl:2"),
            (good[third..].to_vec(), "row 1 should be here, not 2"),
        ] {
            fs::write(&path, left).unwrap();
            let error = refused(dir.path());
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn more_than_a_batch_is_never_cut() {
        let dir = tempfile::tempdir().unwrap();
        reopen(dir.path()).unwrap();
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
