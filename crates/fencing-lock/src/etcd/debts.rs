use super::line::Line;
use super::members::Members;
use super::presence::Presence;
use crate::in_flight::in_background;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Places that still have to be left because no member answered.
///
/// With a lock on one Redis, the TTL makes up for a release that fails. Here the session
/// would keep a forgotten place alive for as long as this process lives. So a place that
/// could not be left is left later, for as long as there is a session that could keep it
/// alive.
#[derive(Default)]
pub(super) struct Debts {
    tasks: Mutex<JoinSet<()>>,
}

/// Beyond this number it is better to end the session, which removes all places.
const DEBTS_MAX: usize = 10_000;
const PAUSE: Duration = Duration::from_millis(100);

impl Debts {
    /// Leaves the place of `line` later. It may belong to the session of any of
    /// `presences`.
    pub(super) fn owe(&self, members: Arc<Members>, line: Line, presences: Vec<Arc<Presence>>) {
        let mut tasks = self.tasks.lock().expect("nobody panics while holding it");
        while tasks.try_join_next().is_some() {}
        if tasks.len() < DEBTS_MAX {
            let presences = presences.iter().map(Arc::downgrade).collect();
            tasks.spawn(leave_later(members, line, presences));
            return;
        }
        line.retire();
        for presence in presences {
            in_background(async move {
                let _best_effort = presence.session.close().await;
            });
        }
    }
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
