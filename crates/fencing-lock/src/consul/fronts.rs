use crate::{LastWord, LockProblem};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{MutexGuard, watch};

/// The waiters of this process for each key. Only the front one asks the server: every try for
/// a held lock is a write to the log of all servers, and a release wakes everybody who asks.
#[derive(Default)]
pub(super) struct Fronts {
    by_key: Mutex<HashMap<String, Arc<Front>>>,
}

/// The front of those who wait for one key.
struct Front {
    /// Those who wait for it get it in the order in which they came.
    turn: tokio::sync::Mutex<()>,
    heard: watch::Sender<Heard>,
    /// How many wait, the front one included.
    waiters: AtomicUsize,
}

#[derive(Clone)]
enum Heard {
    Nothing,
    Busy,
    Problem(LockProblem),
}

/// One who waits for a key.
pub(super) struct Waiter<'a> {
    fronts: &'a Fronts,
    key: &'a str,
    front: Arc<Front>,
}

impl Fronts {
    pub(super) fn waiter<'a>(&'a self, key: &'a str) -> Waiter<'a> {
        let mut by_key = self.by_key.lock();
        let front = by_key.entry(key.to_owned()).or_insert_with(|| {
            Arc::new(Front {
                turn: tokio::sync::Mutex::default(),
                heard: watch::Sender::new(Heard::Nothing),
                waiters: AtomicUsize::new(0),
            })
        });
        front.waiters.fetch_add(1, Ordering::Relaxed);
        Waiter {
            fronts: self,
            key,
            front: front.clone(),
        }
    }
}

impl Waiter<'_> {
    /// Waits until all who came before are done. What the front hears meanwhile is the last
    /// word to everybody.
    pub(super) async fn turn(&self, last: &LastWord) -> MutexGuard<'_, ()> {
        let mut heard = self.front.heard.subscribe();
        heard.mark_changed();
        let listening = async {
            while heard.changed().await.is_ok() {
                match heard.borrow_and_update().clone() {
                    Heard::Nothing => {}
                    Heard::Busy => last.is_busy(),
                    Heard::Problem(problem) => last.is_problem(problem),
                }
            }
            std::future::pending().await
        };
        tokio::select! {
            biased;
            turn = self.front.turn.lock() => turn,
            never = listening => never,
        }
    }

    pub(super) fn is_busy(&self, last: &LastWord) {
        last.is_busy();
        self.front.heard.send_replace(Heard::Busy);
    }

    pub(super) fn is_problem(&self, problem: &LockProblem) {
        self.front
            .heard
            .send_replace(Heard::Problem(problem.clone()));
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut by_key = self.fronts.by_key.lock();
        // They are counted only while this is locked.
        if self.front.waiters.fetch_sub(1, Ordering::Relaxed) == 1 {
            by_key.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use std::time::Duration;

    #[tokio::test]
    async fn one_at_a_time_is_at_the_front_and_the_others_hear_what_it_hears() {
        let fronts = Fronts::default();
        let (first, second) = (fronts.waiter("k"), fronts.waiter("k"));
        let (last, other) = (LastWord::default(), LastWord::default());
        let turn = first.turn(&last).await;
        let mut waiting = Box::pin(second.turn(&other));
        assert!(waiting.as_mut().now_or_never().is_none());
        let problem = LockProblem::NoAnswer("nothing".to_owned());
        first.is_problem(&problem);
        assert!(waiting.as_mut().now_or_never().is_none());
        drop(turn);
        assert!(waiting.now_or_never().is_some());
        assert_eq!(other.into_problem(Duration::ZERO), Some(problem));
        drop(first);
        assert_eq!(fronts.by_key.lock().len(), 1);
        drop(second);
        assert!(fronts.by_key.lock().is_empty());
    }
}
