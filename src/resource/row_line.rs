//! A row as a line of the log: its JSON, with a sum of it as the last field.
//!
//! The sum tells changed bytes from bytes that were never written, which are zeros or missing.

use crate::model::{BodyHash, LogRow, RowOutcome};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::io::Write;

/// A row of a log: of the resource, or of the S3 role.
pub(super) trait Row: Serialize + DeserializeOwned {
    /// The position: 1, 2, 3 … without a gap.
    fn seq(&self) -> u64;

    fn outcome(&self) -> RowOutcome;

    /// Returns what is wrong with a row that could be read.
    fn problem(&self) -> Option<&'static str>;
}

impl Row for LogRow {
    fn seq(&self) -> u64 {
        self.seq
    }

    fn outcome(&self) -> RowOutcome {
        self.outcome
    }

    fn problem(&self) -> Option<&'static str> {
        let is_damaged = self.outcome == RowOutcome::Accepted && self.value.is_none();
        is_damaged.then_some("an accepted row has no value")
    }
}

const SUM: &[u8] = b",\"sum\":\"";
const SUM_DIGITS: usize = 16;
const END: &[u8] = b"\"}\n";

pub(super) fn push(row: &impl Row, lines: &mut Vec<u8>) {
    let start = lines.len();
    serde_json::to_writer(&mut *lines, row).expect("plain data into memory cannot fail");
    // The sum takes the place of the brace that ends the row.
    lines.pop();
    let sum = BodyHash::of(&lines[start..]);
    writeln!(lines, ",\"sum\":\"{sum}\"}}").expect("memory cannot fail");
}

/// Reads a line that may be indented. Rows of earlier programs have no sum, and only those may
/// be without.
pub(super) fn parse<R: Row>(
    line: &[u8],
    expected_seq: u64,
    needs_sum: bool,
) -> Result<Parsed<R>, String> {
    if line.last() != Some(&b'\n') {
        return Err("the row is not complete".into());
    }
    let row: R =
        serde_json::from_slice(line).map_err(|error| format!("this is not a row: {error}"))?;
    if row.seq() != expected_seq {
        return Err(format!(
            "row {expected_seq} should be here, not {}",
            row.seq()
        ));
    }
    if let Some(problem) = row.problem() {
        return Err(problem.into());
    }
    let sum = sum(line.strip_prefix(b" ").unwrap_or(line));
    match sum {
        Some((stated, actual)) if stated != actual => {
            return Err(format!("the row has the sum {actual} and not {stated}"));
        }
        None if needs_sum => return Err("the row has no sum".into()),
        _ => {}
    }
    let has_sum = sum.is_some();
    Ok(Parsed { row, has_sum })
}

pub(super) struct Parsed<R> {
    pub row: R,
    pub has_sum: bool,
}

/// Returns the sum that the line states, and that of its bytes.
fn sum(line: &[u8]) -> Option<(BodyHash, BodyHash)> {
    let line = line.strip_suffix(END)?;
    let (line, stated) = line.split_at_checked(line.len().checked_sub(SUM_DIGITS)?)?;
    let stated = BodyHash::parse(std::str::from_utf8(stated).ok()?)?;
    let actual = BodyHash::of(line.strip_suffix(SUM)?);
    Some((stated, actual))
}

/// Returns whether more bytes could make this a line.
pub(super) fn is_beginning(bytes: &[u8]) -> bool {
    match serde_json::from_slice::<IgnoredAny>(bytes) {
        Ok(_) => bytes.ends_with(b"}"),
        Err(error) => error.is_eof(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RowValue;

    fn row() -> LogRow {
        LogRow {
            seq: 1,
            at_ns: 7,
            key: "k".into(),
            outcome: RowOutcome::Accepted,
            token: None,
            token_seq: 0,
            seen: None,
            owner: Some("a".into()),
            based_on: None,
            body: None,
            value: Some(RowValue::Text(
                "né\u{1}\",\"sum\":\"0123456789abcdef".into(),
            )),
        }
    }

    #[test]
    fn a_changed_bit_is_noticed_wherever_it_is() {
        let mut line = b" ".to_vec();
        push(&row(), &mut line);
        assert_eq!(parse::<LogRow>(&line, 1, true).unwrap().row, row());
        for bit in 0..8 * line.len() {
            let mut changed = line.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            if let Ok(parsed) = parse::<LogRow>(&changed, 1, true) {
                assert_eq!(parsed.row, row(), "bit {bit}");
            }
            assert!(!is_beginning(&changed), "bit {bit} looks torn");
        }
    }

    #[test]
    fn a_line_cut_at_any_byte_is_a_beginning() {
        let mut line = Vec::new();
        push(&row(), &mut line);
        for length in 0..line.len() {
            assert!(is_beginning(&line[..length]), "{length}");
        }
    }

    #[test]
    fn a_row_of_an_earlier_program_has_no_sum() {
        let line = serde_json::to_string(&row()).unwrap() + "\n";
        assert!(!parse::<LogRow>(line.as_bytes(), 1, false).unwrap().has_sum);
        assert!(parse::<LogRow>(line.as_bytes(), 1, true).is_err());
    }

    #[test]
    fn an_accepted_row_without_a_value_is_damage() {
        let without = LogRow {
            value: None,
            ..row()
        };
        let mut line = Vec::new();
        push(&without, &mut line);
        assert!(parse::<LogRow>(&line, 1, false).is_err());
    }
}
