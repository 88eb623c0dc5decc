use super::line::Line;
use super::members::Members;
use super::presence::Presence;
use crate::task::Task;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;
use tokio::time::sleep;

/// Places that still have to be left because no member answered.
///
/// With a lock on one Redis, the TTL makes up for a release that fails. Here the session
/// would keep a forgotten place alive for as long as this process lives. So a place that
/// could not be left is left later, for as long as there is a session that could keep it
/// alive.
#[derive(Default)]
pub(super) struct Debts {
    open: Arc<Mutex<Open>>,
}

#[derive(Default)]
struct Open {
    /// The number of debts so far.
    count: u64,
    /// By number. Each removes itself when it is paid.
    tasks: BTreeMap<u64, Task>,
}

/// Beyond this number it is better to end the session, which removes all places.
const DEBTS_MAX: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(100);

impl Debts {
    /// Leaves the place of `line` later. It may belong to the session of any of
    /// `presences`.
    pub(super) fn owe(&self, members: Arc<Members>, line: Line, presences: Vec<Arc<Presence>>) {
        let env = members.env().clone();
        let mut open = lock(&self.open);
        if open.tasks.len() < DEBTS_MAX {
            open.count += 1;
            let number = open.count;
            let presences = presences.iter().map(Arc::downgrade).collect();
            let debts = Arc::downgrade(&self.open);
            let task = env.spawn(async move {
                leave_later(members, line, presences).await;
                if let Some(debts) = debts.upgrade() {
                    lock(&debts).tasks.remove(&number);
                }
            });
            open.tasks.insert(number, task);
            return;
        }
        drop(open);
        line.retire();
        for presence in presences {
            env.in_background(async move {
                let _best_effort = presence.session.close().await;
            });
        }
    }
}

fn lock(open: &Mutex<Open>) -> MutexGuard<'_, Open> {
    open.lock().expect("nobody panics while holding it")
}

async fn leave_later(members: Arc<Members>, line: Line, presences: Vec<Weak<Presence>>) {
    loop {
        sleep(PAUSE).await;
        let alive = presences.iter().filter_map(Weak::upgrade);
        let alive: Vec<_> = alive.filter(|one| !one.session.is_over()).collect();
        if alive.is_empty() {
            line.retire();
            return;
        }
        let mut fenced_off = true;
        for presence in alive {
            fenced_off &= presence.fence_off().await.is_ok();
        }
        if fenced_off && line.leave(&members).await.is_ok() {
            return;
        }
    }
}
