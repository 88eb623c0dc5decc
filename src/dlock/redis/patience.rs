use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};
use tokio_util::task::AbortOnDropHandle;

/// How long the requests of one connection wait for their answers.
///
/// One task looks at all of them, a few times in that time, and sleeps while
/// there are none. A timer for each would wake the runtime for each, and that
/// costs more than the rest of what a client does for a request.
pub(super) struct Patience {
    limit: Duration,
    requests: Arc<Requests>,
    _looking: AbortOnDropHandle<()>,
}

#[derive(Default)]
struct Requests {
    in_flight: AtomicUsize,
    look: Notify,
    nobody_looks: AtomicBool,
    first: Notify,
}

const LOOKS: u32 = 10;

impl Patience {
    pub(super) fn new(limit: Duration) -> Patience {
        let requests: Arc<Requests> = Arc::default();
        let every = (limit / LOOKS).max(Duration::from_millis(1));
        Patience {
            limit,
            _looking: AbortOnDropHandle::new(tokio::spawn(look(requests.clone(), every))),
            requests,
        }
    }

    pub(super) fn limit(&self) -> Duration {
        self.limit
    }

    /// The answer; `None` if it does not come in time or a little later.
    pub(super) async fn bound<T>(&self, request: impl Future<Output = T>) -> Option<T> {
        let _in_flight = InFlight::new(&self.requests);
        let asked_at = Instant::now();
        let mut request = pin!(request);
        loop {
            tokio::select! {
                biased;
                answer = &mut request => return Some(answer),
                () = self.requests.look.notified() => {}
            }
            if asked_at.elapsed() >= self.limit {
                return None;
            }
        }
    }
}

struct InFlight<'a>(&'a Requests);

impl InFlight<'_> {
    fn new(requests: &Requests) -> InFlight<'_> {
        requests.in_flight.fetch_add(1, Ordering::SeqCst);
        if requests.nobody_looks.swap(false, Ordering::SeqCst) {
            requests.first.notify_one();
        }
        InFlight(requests)
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn look(requests: Arc<Requests>, every: Duration) {
    loop {
        requests.nobody_looks.store(true, Ordering::SeqCst);
        // Who came before this was told still counts; who comes after it tells us.
        if requests.in_flight.load(Ordering::SeqCst) == 0 {
            requests.first.notified().await;
        }
        requests.nobody_looks.store(false, Ordering::SeqCst);
        sleep(every).await;
        requests.look.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    const LIMIT: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_ends_a_little_after_the_limit() {
        let patience = Patience::new(LIMIT);
        for _ in 0..3 {
            let from = Instant::now();
            assert_eq!(patience.bound(pending::<()>()).await, None);
            let waited = from.elapsed();
            assert!((LIMIT..LIMIT * 12 / 10).contains(&waited), "{waited:?}");
            // Long enough for the one who looks to go to sleep.
            sleep(10 * LIMIT).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_time_is_returned() {
        let patience = Patience::new(LIMIT);
        assert_eq!(patience.bound(ready(1)).await, Some(1));
        let late = async {
            sleep(LIMIT * 9 / 10).await;
            2
        };
        assert_eq!(patience.bound(late).await, Some(2));
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_dropped_are_not_counted() {
        let patience = Patience::new(LIMIT);
        let dropped = tokio::time::timeout(LIMIT / 2, patience.bound(pending::<()>())).await;
        assert!(dropped.is_err());
        assert_eq!(patience.requests.in_flight.load(Ordering::SeqCst), 0);
    }
}
