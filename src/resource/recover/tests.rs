use super::super::log::{Batch, Log};
use super::super::storage::{FILE_NAME, MARK_FILE_NAME};
use super::*;
use crate::model::{LogRow, RowOutcome, RowValue};
use std::fs;
use std::path::Path;

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

/// Writes rows without a sync: no client was answered.
fn write(dir: &Path, rows: &[LogRow]) {
    Log::open(dir, |_: LogRow| ())
        .unwrap()
        .write(&batch(rows))
        .unwrap();
}

/// Writes, syncs and marks rows: every client may have been answered.
fn commit(dir: &Path, rows: &[LogRow]) {
    let mut log = Log::open(dir, |_: LogRow| ()).unwrap();
    log.write(&batch(rows)).unwrap();
    log.sync(&batch(rows)).unwrap();
}

fn reopen(dir: &Path) -> Result<Vec<u64>, LogError> {
    let mut seqs = Vec::new();
    Log::open(dir, |row: LogRow| seqs.push(row.seq)).map(|_| seqs)
}

/// Returns the error, and checks that nothing was changed.
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
    let mark = dir.path().join(MARK_FILE_NAME);
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
    let long = "c".repeat(2000);
    write(dir.path(), &[row(2, "b"), row(3, &long), row(4, "d")]);
    let mut bytes = fs::read(&path).unwrap();
    let in_row_3 = bytes.windows(3).position(|w| w == b"ccc").unwrap();
    let hole = in_row_3.next_multiple_of(SECTOR_BYTES);
    bytes[hole..hole + SECTOR_BYTES].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(reopen(dir.path()).unwrap(), [1, 2]);
}

#[test]
fn zeros_that_are_not_a_whole_sector_are_damage() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    commit(dir.path(), &[row(1, "a")]);
    write(dir.path(), &[row(2, &"b".repeat(2000)), row(3, "c")]);
    let good = fs::read(&path).unwrap();
    let begin = good.iter().position(|&byte| byte == b'b').unwrap();
    let sector = begin.next_multiple_of(SECTOR_BYTES);
    let wrong = [
        sector + 1..sector + 2,
        sector..sector + SECTOR_BYTES - 1,
        sector + 1..sector + SECTOR_BYTES,
        good.len() - 1..good.len(),
    ];
    for zeros in wrong {
        let mut bytes = good.clone();
        bytes[zeros.clone()].fill(0);
        fs::write(&path, &bytes).unwrap();
        let error = refused(dir.path());
        assert!(error.contains("may hold rows"), "{zeros:?}: {error}");
    }
}

#[test]
fn a_changed_byte_is_not_a_torn_end_even_where_the_mark_is_behind() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    commit(dir.path(), &[row(1, "a")]);
    let mark = fs::read(dir.path().join(MARK_FILE_NAME)).unwrap();
    commit(dir.path(), &[row(2, "b")]);
    let good = fs::read(&path).unwrap();
    let begin = good.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for at in begin..good.len() {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        fs::write(&path, &bytes).unwrap();
        fs::write(dir.path().join(MARK_FILE_NAME), &mark).unwrap();
        refused(dir.path());
    }
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
    assert!(error.contains("log.jsonl:3: this is not a row"), "{error}");
    assert!(error.contains("on hold rows that were ack"), "{error}");
    assert!(error.contains("sed -i '3,$d'"), "{error}");

    // These are changed rows that are still valid, and rows missing at the very end.
    let changed = (1..=3).flat_map(|seq| batch(&[row(seq, "b")]).into_bytes());
    fs::write(&path, changed.collect::<Vec<u8>>()).unwrap();
    let error = refused(dir.path());
    assert!(error.contains("3 rows that were ack"), "{error}");
    assert!(error.contains("another hash"), "{error}");
    for length in [0, last, good.len() - 1] {
        fs::write(&path, &good[..length]).unwrap();
        refused(dir.path());
    }

    // A person can decide: without the mark the log is accepted as it is.
    fs::write(&path, &good[..last]).unwrap();
    fs::remove_file(dir.path().join(MARK_FILE_NAME)).unwrap();
    assert_eq!(reopen(dir.path()).unwrap(), [1, 2]);
}

#[test]
fn a_mark_that_a_power_failure_left_behind_keeps_what_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE_NAME);
    let mark = dir.path().join(MARK_FILE_NAME);
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
    assert!(error.contains("log.jsonl:2: this is not a row"), "{error}");
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
