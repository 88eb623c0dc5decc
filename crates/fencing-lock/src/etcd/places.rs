use super::line::{Line, Predecessor};
use crate::ReleaseOutcome;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::watch;

/// The places that this process has in lines. An attempt that waits behind one of them
/// learns of its end here, and needs no watch for it.
///
/// A holder that was first, and whose deletion the cluster has confirmed, hands over to
/// the attempt that was just behind it: nobody can have come between the two, because
/// places are only made at the end of a line. That attempt holds the lock now, without a
/// look.
#[derive(Default)]
pub(super) struct Places {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_owner: HashMap<String, Taken>,
    /// Keyed by the name of the place.
    ends: HashMap<Vec<u8>, (i64, watch::Receiver<End>)>,
}

struct Taken {
    line: Line,
    is_holder: bool,
    end: watch::Sender<End>,
}

/// The way in which a place was left. If nothing is sent, the place is not known to be
/// gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    NotYet,
    HandedOver,
}

impl Places {
    pub(super) fn taken(&self, line: &Line, revision: i64) {
        let (end, ends) = watch::channel(End::NotYet);
        let mut table = self.table();
        table.ends.insert(line.place().to_vec(), (revision, ends));
        let taken = Taken {
            line: line.clone(),
            is_holder: false,
            end,
        };
        table.by_owner.insert(line.owner().to_owned(), taken);
    }

    /// Notes that no place is before that of `owner` any more.
    pub(super) fn is_first(&self, owner: &str) {
        if let Some(taken) = self.table().by_owner.get_mut(owner) {
            taken.is_holder = true;
        }
    }

    pub(super) fn line_of(&self, owner: &str) -> Option<Line> {
        let table = self.table();
        table.by_owner.get(owner).map(|taken| taken.line.clone())
    }

    /// Notes that the place was left, with the cluster's answer.
    pub(super) fn left(&self, owner: &str, outcome: Option<ReleaseOutcome>) {
        let mut table = self.table();
        let Some(taken) = table.by_owner.remove(owner) else {
            return;
        };
        table.ends.remove(taken.line.place());
        if taken.is_holder && outcome == Some(ReleaseOutcome::Released) {
            taken.end.send_replace(End::HandedOver);
        }
    }

    /// Returns the receiver for the end of a place, if the place is one of ours.
    pub(super) fn end_of(&self, before: &Predecessor) -> Option<watch::Receiver<End>> {
        let table = self.table();
        let (revision, end) = table.ends.get(&before.key)?;
        (*revision == before.revision).then(|| end.clone())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("nobody panics while holding it")
    }
}

#[cfg(test)]
mod tests {
    use super::super::seats::Seats;
    use super::*;
    use ReleaseOutcome::{Expired, Released};

    /// Returns what a waiter behind a place learns of its end.
    async fn heard(is_holder: bool, outcome: Option<ReleaseOutcome>) -> Option<End> {
        let places = Places::default();
        let line = Line::new("k", "a", Seats::new(&crate::Env::default()).take());
        places.taken(&line, 7);
        let at = |revision| Predecessor {
            key: line.place().to_vec(),
            revision,
        };
        assert!(places.end_of(&at(6)).is_none(), "another's in that place");
        let mut end = places.end_of(&at(7)).expect("one of ours");
        if is_holder {
            places.is_first("a");
        }
        places.left("a", outcome);
        assert!(places.end_of(&at(7)).is_none());
        assert!(places.line_of("a").is_none());
        end.changed().await.ok().map(|()| *end.borrow())
    }

    #[tokio::test]
    async fn only_a_holder_whose_deletion_is_confirmed_hands_over() {
        assert_eq!(heard(true, Some(Released)).await, Some(End::HandedOver));
        assert_eq!(heard(true, Some(Expired)).await, None);
        assert_eq!(heard(true, None).await, None);
        assert_eq!(heard(false, Some(Released)).await, None);
    }
}
