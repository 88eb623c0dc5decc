use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::OwnedMutexGuard;

/// A queue which lets the attempts of this process join one line one after the other, in
/// the order in which they came. Requests that are under way together reach the cluster
/// in any order, even on one connection. Between processes, only the cluster decides who
/// came first.
#[derive(Default)]
pub(super) struct Arrivals {
    table: Mutex<Table>,
}

type Door = tokio::sync::Mutex<()>;

#[derive(Default)]
struct Table {
    /// Keyed by the lock's key. A door exists while somebody waits at it.
    doors: HashMap<String, Weak<Door>>,
    /// The number of doors at which unused ones are dropped.
    sweep_at: usize,
}

const SWEEP_AT_LEAST: usize = 100;

impl Arrivals {
    /// Waits until all earlier attempts have joined or given up.
    pub(super) async fn turn(&self, key: &str) -> OwnedMutexGuard<()> {
        self.door(key).lock_owned().await
    }

    fn door(&self, key: &str) -> Arc<Door> {
        let mut table = self.table.lock().expect("nobody panics while holding it");
        if let Some(door) = table.doors.get(key).and_then(Weak::upgrade) {
            return door;
        }
        if table.doors.len() >= table.sweep_at {
            table.doors.retain(|_, door| door.strong_count() > 0);
            table.sweep_at = SWEEP_AT_LEAST.max(2 * table.doors.len());
        }
        let door = Arc::new(Door::default());
        table.doors.insert(key.to_owned(), Arc::downgrade(&door));
        door
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_lock_has_one_door_and_doors_are_forgotten() {
        let arrivals = Arrivals::default();
        let first = arrivals.turn("k").await;
        assert!(arrivals.door("k").try_lock().is_err());
        assert!(arrivals.door("other").try_lock().is_ok());
        for n in 0..10 * SWEEP_AT_LEAST {
            let _gone = arrivals.turn(&n.to_string()).await;
        }
        assert!(arrivals.table.lock().unwrap().doors.len() <= SWEEP_AT_LEAST);
        assert!(arrivals.door("k").try_lock().is_err(), "somebody is at it");
        drop(first);
        assert!(arrivals.door("k").try_lock().is_ok());
    }
}
