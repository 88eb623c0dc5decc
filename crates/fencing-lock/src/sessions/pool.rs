use super::{SessionConnection, SessionServer, Taken, Wanted};
use crate::{Env, LockProblem, ReleaseOutcome};
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// The sessions of this process at one server: one for each lock that is held or awaited,
/// and some that wait for their next lock.
pub(super) struct Sessions<S: SessionServer> {
    server: Arc<S>,
    requests: Counter,
    idle: Mutex<Vec<(Instant, Session<S>)>>,
}

/// One session. The server ends it, with the lock that it holds, when it is dropped.
pub(super) struct Session<S: SessionServer> {
    connection: S::Connection,
    /// Cancelled when the connection has ended, in any way.
    ended: CancellationToken,
    server: Arc<S>,
    requests: Counter,
}

/// A session in the middle of a request for a lock. If the request waits at the server and is
/// dropped, the server is told to stop as well: it would not look at its connection before the
/// statement ends.
struct Asked<S: SessionServer> {
    session: Option<Session<S>>,
    waits: bool,
}

const IDLE_MAX: usize = 8;
/// A session that was silent for longer may be one that its server has ended: none ends them
/// sooner.
const IDLE_FOR: Duration = Duration::from_secs(1);

impl<S: SessionServer> Sessions<S> {
    pub(super) fn new(server: S) -> Sessions<S> {
        Sessions {
            server: Arc::new(server),
            requests: Counter::default(),
            idle: Mutex::default(),
        }
    }

    pub(super) fn env(&self) -> &Env {
        self.server.env()
    }

    pub(super) fn requests(&self) -> Counter {
        self.requests.clone()
    }

    /// Asks for a lock on a session that nobody else uses, and returns the session with the
    /// answer and the moment from before the question.
    ///
    /// A session that was used before can be dead. Then the question is asked again on a new
    /// one: what the dead one may hold ends with it. If one is dead the others may be too, so
    /// it is the only one that costs its time limit.
    pub(super) async fn take(
        &self,
        wanted: Wanted<'_>,
        wait: Duration,
    ) -> Result<(Session<S>, Taken, Instant), LockProblem> {
        if let Some(session) = self.used() {
            match session.take(wanted, wait).await {
                Err(LockProblem::NoAnswer(_)) => self.idle.lock().clear(),
                answer => return answer,
            }
        }
        self.new_one().await?.take(wanted, wait).await
    }

    /// Keeps a session that holds nothing for the next lock.
    pub(super) fn put_back(&self, session: Session<S>) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !session.is_over() {
            idle.push((Instant::now(), session));
        }
    }

    fn used(&self) -> Option<Session<S>> {
        let mut idle = self.idle.lock();
        idle.retain(|(since, session)| since.elapsed() < IDLE_FOR && !session.is_over());
        idle.pop().map(|(_, session)| session)
    }

    async fn new_one(&self) -> Result<Session<S>, LockProblem> {
        let ended = CancellationToken::new();
        let connection = self.server.connect(ended.clone().drop_guard()).await?;
        Ok(Session {
            connection,
            ended,
            server: self.server.clone(),
            requests: self.requests.clone(),
        })
    }
}

impl<S: SessionServer> Session<S> {
    fn is_over(&self) -> bool {
        self.ended.is_cancelled() || self.connection.is_closed()
    }

    pub(super) fn env(&self) -> &Env {
        self.server.env()
    }

    pub(super) fn silent_max(&self) -> Duration {
        self.connection.silent_max()
    }

    /// Completes when the connection has ended.
    pub(super) fn ended(&self) -> CancellationToken {
        self.ended.clone()
    }

    async fn take(
        self,
        wanted: Wanted<'_>,
        wait: Duration,
    ) -> Result<(Session<S>, Taken, Instant), LockProblem> {
        let asked_at = Instant::now();
        let within = wait + self.server.response_timeout();
        let asked = Asked {
            waits: !wait.is_zero(),
            session: Some(self),
        };
        let session = asked.session.as_ref().expect("it is taken below");
        let taking = session.connection.take(wanted, wait);
        let taken = session.in_time(within, taking).await?;
        Ok((asked.answered(), taken, asked_at))
    }

    /// Returns whether the session still serves this owner.
    pub(super) async fn confirm(&self, wanted: Wanted<'_>) -> Result<bool, LockProblem> {
        let within = self.server.response_timeout();
        self.in_time(within, self.connection.confirm(wanted)).await
    }

    pub(super) async fn release(&self, wanted: Wanted<'_>) -> Result<ReleaseOutcome, LockProblem> {
        let within = self.server.response_timeout();
        self.in_time(within, self.connection.release(wanted)).await
    }

    async fn in_time<T>(
        &self,
        within: Duration,
        request: impl Future<Output = Result<T, LockProblem>>,
    ) -> Result<T, LockProblem> {
        self.requests.inc();
        let too_late = |_| {
            let within_ms = within.as_millis();
            Err(LockProblem::NoAnswer(format!("not within {within_ms} ms")))
        };
        timeout(within, request).await.unwrap_or_else(too_late)
    }
}

impl<S: SessionServer> Asked<S> {
    fn answered(mut self) -> Session<S> {
        self.session.take().expect("it is taken only once")
    }
}

impl<S: SessionServer> Drop for Asked<S> {
    fn drop(&mut self) {
        let left = self.session.take();
        let Some(session) = left.filter(|session| self.waits && !session.is_over()) else {
            return;
        };
        let env = session.env().clone();
        env.in_background(async move {
            session.server.stop(&session.connection).await;
            // The end of the connection frees whatever it was granted meanwhile.
            drop(session);
        });
    }
}
