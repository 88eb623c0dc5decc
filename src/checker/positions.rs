use crate::model::LogRow;
use std::collections::HashMap;

/// Finds the row at a log position, also in a log with holes.
pub(super) struct Positions<'a> {
    log: &'a [LogRow],
    /// Only built where a position is not simply the index plus one.
    by_seq: Option<HashMap<u64, usize>>,
}

impl<'a> Positions<'a> {
    pub fn of(log: &'a [LogRow]) -> Positions<'a> {
        let whole = log
            .iter()
            .zip(1..)
            .all(|(row, expected)| row.seq == expected);
        let by_seq = (!whole).then(|| {
            log.iter()
                .enumerate()
                .map(|(index, row)| (row.seq, index))
                .collect()
        });
        Positions { log, by_seq }
    }

    /// Whether the log counts 1, 2, 3 … A log cut off at its end looks whole, too.
    pub fn whole(&self) -> bool {
        self.by_seq.is_none()
    }

    pub fn index_of(&self, seq: u64) -> Option<usize> {
        match &self.by_seq {
            Some(by_seq) => by_seq.get(&seq).copied(),
            None => {
                let index = usize::try_from(seq.checked_sub(1)?).ok()?;
                (index < self.log.len()).then_some(index)
            }
        }
    }

    pub fn row(&self, seq: u64) -> Option<&'a LogRow> {
        self.index_of(seq).map(|index| &self.log[index])
    }
}
