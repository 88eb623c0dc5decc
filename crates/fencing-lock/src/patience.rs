use crate::Env;
use crate::task::Task;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// The time limit for answers to the requests of one connection.
///
/// One task checks all requests, several times within the limit, and sleeps while there
/// are none. A timer for each request would wake the runtime for each, and that costs
/// more than the rest of a client's work for a request.
pub(super) struct Patience {
    limit: Duration,
    unanswered: Arc<Unanswered>,
    _looking: Task,
}

#[derive(Default)]
struct Unanswered {
    requests: AtomicUsize,
    look: Notify,
    nobody_looks: AtomicBool,
    first: Notify,
}

const LOOKS: u32 = 10;

impl Patience {
    pub(super) fn new(env: &Env, limit: Duration) -> Patience {
        let unanswered: Arc<Unanswered> = Arc::default();
        let every = (limit / LOOKS).max(Duration::from_millis(1));
        Patience {
            limit,
            _looking: env.spawn(look(unanswered.clone(), every)),
            unanswered,
        }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the answer, or `None` if it has not come by the first check after the
    /// limit.
    ///
    /// It counts checks, and not time: a process that was stopped finds its timers before
    /// the answers that came meanwhile, and one check more lets it hear them.
    pub(super) async fn bound<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let _asking = Asking::new(&self.unanswered);
        let mut request = pin!(request);
        // The first check comes at any time.
        for _check in 0..=LOOKS {
            tokio::select! {
                biased;
                answer = &mut request => return Some(answer),
                () = self.unanswered.look.notified() => {}
            }
        }
        None
    }
}

/// One request until its future is done or dropped.
struct Asking<'a>(&'a Unanswered);

impl Asking<'_> {
    fn new(unanswered: &Unanswered) -> Asking<'_> {
        unanswered.requests.fetch_add(1, Ordering::SeqCst);
        if unanswered.nobody_looks.swap(false, Ordering::SeqCst) {
            unanswered.first.notify_one();
        }
        Asking(unanswered)
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn look(unanswered: Arc<Unanswered>, every: Duration) {
    loop {
        unanswered.nobody_looks.store(true, Ordering::SeqCst);
        // A request that came before this flag was set is counted here; one that comes
        // later notifies us.
        if unanswered.requests.load(Ordering::SeqCst) == 0 {
            unanswered.first.notified().await;
        }
        unanswered.nobody_looks.store(false, Ordering::SeqCst);
        sleep(every).await;
        unanswered.look.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};
    use tokio::time::{Instant, advance};

    const LIMIT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_ends_a_little_after_the_limit() {
        let patience = Patience::new(&Env::default(), LIMIT);
        for _ in 0..3 {
            let from = Instant::now();
            assert_eq!(patience.bound(pending::<()>()).await, None);
            let waited = from.elapsed();
            assert!((LIMIT..LIMIT * 12 / 10).contains(&waited), "{waited:?}");
            // This is long enough for the checking task to go to sleep.
            sleep(10 * LIMIT).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_time_is_returned() {
        let patience = Patience::new(&Env::default(), LIMIT);
        assert_eq!(patience.bound(ready(1)).await, Some(1));
        let late = async {
            sleep(LIMIT * 9 / 10).await;
            2
        };
        assert_eq!(patience.bound(late).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_came_while_the_process_was_stopped_is_heard() {
        let patience = Patience::new(&Env::default(), LIMIT);
        let (answer, answered) = tokio::sync::oneshot::channel();
        let asking = tokio::spawn(async move { patience.bound(answered).await });
        tokio::task::yield_now().await;
        // All timers are late at once, and the answer comes after them.
        advance(100 * LIMIT).await;
        for _ in 0..5 {
            tokio::task::yield_now().await;
        }
        answer.send(7).unwrap();
        assert_eq!(asking.await.unwrap(), Some(Ok(7)));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_dropped_are_not_counted() {
        let patience = Patience::new(&Env::default(), LIMIT);
        let dropped = tokio::time::timeout(LIMIT / 2, patience.bound(pending::<()>())).await;
        assert!(dropped.is_err());
        assert_eq!(patience.unanswered.requests.load(Ordering::SeqCst), 0);
    }
}
