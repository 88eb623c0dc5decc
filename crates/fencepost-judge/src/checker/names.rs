use super::*;

/// The worker of each owner, as far as the history knows.
///
/// The resource logs the random id of a hold; a person wants to read a name.
pub(super) struct Names<'a> {
    worker_by_owner: HashMap<&'a str, &'a str>,
    /// The same by the owner's number in the log, with a number for each worker.
    by_number: Vec<Option<(&'a str, u32)>>,
    log: &'a Log,
}

/// The writer of a row, by number: a worker, or an owner that no worker is known to have
/// had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Writer {
    Worker(u32),
    Unknown(u32),
    Nobody,
}

impl<'a> Names<'a> {
    pub fn new(history: &[&'a Event], log: &'a Log) -> Names<'a> {
        let mut worker_by_owner = HashMap::new();
        for event in history {
            if let EventKind::Acquired { owner, .. }
            | EventKind::Writing { owner, .. }
            | EventKind::WriteAccepted { owner, .. }
            | EventKind::WriteRejected { owner, .. } = &event.kind
            {
                // The first worker to use an owner keeps it: the grant comes before
                // anybody who could have borrowed the id.
                worker_by_owner
                    .entry(owner.as_str())
                    .or_insert(event.worker.as_str());
            }
        }
        let mut by_number = vec![None; log.owner_count()];
        let mut workers: HashMap<&str, u32> = HashMap::new();
        for (owner, worker) in &worker_by_owner {
            let next = workers.len() as u32;
            let own = *workers.entry(worker).or_insert(next);
            if let Some(Owner(number)) = log.owner_named(owner) {
                by_number[number as usize] = Some((*worker, own));
            }
        }
        Names {
            worker_by_owner,
            by_number,
            log,
        }
    }

    pub fn worker(&self, owner: Option<&str>) -> Option<&'a str> {
        self.worker_by_owner.get(owner?).copied()
    }

    /// Returns the worker that wrote a row.
    pub fn writer(&self, row: &Row) -> Option<&'a str> {
        let (worker, _) = self.by_number[row.owner?.0 as usize]?;
        Some(worker)
    }

    /// Returns the same as a number, for counting.
    pub fn number(&self, row: &Row) -> Writer {
        let Some(owner) = row.owner else {
            return Writer::Nobody;
        };
        match self.by_number[owner.0 as usize] {
            Some((_, worker)) => Writer::Worker(worker),
            None => Writer::Unknown(owner.0),
        }
    }

    /// Returns one word for the writer: the worker, else the owner, else a question mark.
    pub fn short(&self, row: &Row) -> &'a str {
        let writer = self.writer(row).or(self.log.owner_of(row));
        writer.unwrap_or("?")
    }

    /// Returns the worker and its owner id, for a person who wants to find the rows.
    pub fn full(&self, row: &Row) -> String {
        match (self.writer(row), self.log.owner_of(row)) {
            (Some(worker), Some(owner)) => format!("{worker} (owner {owner})"),
            (None, Some(owner)) => format!("owner {owner}"),
            (_, None) => "an unknown writer".to_owned(),
        }
    }
}
