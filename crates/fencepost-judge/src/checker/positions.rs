use super::*;

/// Finds the row at a log position, even in a log with holes.
pub(super) struct Positions<'a> {
    /// Sorted by position, each once.
    log: &'a [Row],
    is_whole: bool,
}

impl<'a> Positions<'a> {
    pub fn of(log: &'a [Row]) -> Positions<'a> {
        let counts_up = log.last().is_none_or(|last| last.seq == log.len() as u64);
        let starts_at_one = log.first().is_none_or(|first| first.seq == 1);
        Positions {
            log,
            is_whole: counts_up && starts_at_one,
        }
    }

    pub fn index_of(&self, seq: u64) -> Option<usize> {
        if self.is_whole {
            let index = usize::try_from(seq.checked_sub(1)?).ok()?;
            return (index < self.log.len()).then_some(index);
        }
        self.log.binary_search_by_key(&seq, |row| row.seq).ok()
    }

    pub fn row(&self, seq: u64) -> Option<&'a Row> {
        self.index_of(seq).map(|index| &self.log[index])
    }

    /// Returns the highest position.
    pub fn last(&self) -> u64 {
        self.log.last().map_or(0, |row| row.seq)
    }
}
