use super::*;
use std::borrow::Cow;

/// The log in the order of its positions, each once.
pub(super) struct LogInOrder<'a> {
    pub rows: Cow<'a, [Row]>,
    pub is_whole: bool,
    pub doubts: Vec<Doubt>,
}

pub(super) fn sound(record: &CaseRecord) -> LogInOrder<'_> {
    let rows = &record.log.rows;
    let mut doubts = Vec::new();
    if let Some(pair) = rows
        .windows(2)
        .find(|pair| pair[1].seq > pair[0].seq && pair[1].at_ns < pair[0].at_ns)
    {
        let text = format!(
            "the times of the log run backwards: position {} comes before position {}",
            pair[1].seq, pair[0].seq
        );
        doubts.push(Doubt::new(DoubtReason::TimesBackwards, text));
    }
    let first_break = first_break(rows, record.log_has_gaps);
    let mut in_order = Cow::Borrowed(rows.as_slice());
    let mut is_whole = first_break.is_none();
    if let Some((row, expected)) = first_break {
        let (sorted, told) = sorted(record);
        is_whole = self::first_break(&sorted, record.log_has_gaps).is_none();
        if !is_whole || told.is_empty() {
            // One sentence is enough: after the first break no position can be relied on.
            let text = format!(
                "the log is not whole: position {expected} should come next, but {} does",
                row.seq
            );
            doubts.push(Doubt::new(DoubtReason::LogNotWhole, text));
        }
        doubts.extend(told);
        in_order = Cow::Owned(sorted);
    }
    if let Some(collected) = record.log_rows
        && collected != in_order.len() as u64
    {
        is_whole = false;
        let text = format!(
            "the log had {collected} rows when it was collected, and has {} now",
            in_order.len()
        );
        doubts.push(Doubt::new(DoubtReason::LogNotWhole, text));
    }
    LogInOrder {
        rows: in_order,
        is_whole,
        doubts,
    }
}

/// Returns the first row that does not have the position that comes next, and that position. In a
/// log with gaps, any higher position may come next.
fn first_break(rows: &[Row], has_gaps: bool) -> Option<(&Row, u64)> {
    let mut next = 1;
    rows.iter().find_map(|row| {
        let fits = if has_gaps {
            row.seq >= next
        } else {
            row.seq == next
        };
        let expected = std::mem::replace(&mut next, row.seq.saturating_add(1));
        (!fits).then_some((row, expected))
    })
}

/// Sorts the log by position. Of two rows at one position the first is kept.
fn sorted(record: &CaseRecord) -> (Vec<Row>, Vec<Doubt>) {
    let mut rows = record.log.rows.clone();
    rows.sort_by_key(|row| row.seq);
    let mut doubts = Vec::new();
    rows.dedup_by(|later, first| {
        if later.seq != first.seq {
            return false;
        }
        let same = record.log.written(later) == record.log.written(first);
        let (reason, words) = match same {
            true => (DoubtReason::RowTwice, "the log has a row twice"),
            false => (
                DoubtReason::Contradiction,
                "the log has two different rows at one position",
            ),
        };
        doubts.push(Doubt::new(
            reason,
            format!("{words}: position {}", first.seq),
        ));
        true
    });
    (rows, doubts)
}
