use crate::model::{Event, EventKind};
use std::collections::HashMap;

/// Which worker stands behind which owner, as far as the history knows.
///
/// The resource logs the random id of a hold; a person wants to read a name.
pub(super) struct Names<'a> {
    worker_by_owner: HashMap<&'a str, &'a str>,
}

impl<'a> Names<'a> {
    pub fn from_history(history: &'a [Event]) -> Names<'a> {
        let mut worker_by_owner = HashMap::new();
        for event in history {
            if let EventKind::Acquired { owner, .. }
            | EventKind::Writing { owner, .. }
            | EventKind::WriteAccepted { owner, .. }
            | EventKind::WriteRejected { owner, .. } = &event.kind
            {
                // The first to use an owner keeps it: the grant comes before anybody
                // who could have borrowed the id.
                worker_by_owner
                    .entry(owner.as_str())
                    .or_insert(event.worker.as_str());
            }
        }
        Names { worker_by_owner }
    }

    pub fn worker(&self, owner: Option<&str>) -> Option<&'a str> {
        self.worker_by_owner.get(owner?).copied()
    }

    /// One word for whoever wrote: the worker, else the owner, else a question mark.
    pub fn short<'b>(&self, owner: Option<&'b str>) -> &'b str
    where
        'a: 'b,
    {
        self.worker(owner).or(owner).unwrap_or("?")
    }

    /// For a person who wants to find the rows: the worker and its owner id.
    pub fn full(&self, owner: Option<&str>) -> String {
        match (self.worker(owner), owner) {
            (Some(worker), Some(owner)) => format!("{worker} (owner {owner})"),
            (None, Some(owner)) => format!("owner {owner}"),
            (_, None) => "an unknown writer".to_owned(),
        }
    }
}
