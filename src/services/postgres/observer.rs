use super::rows::LeaseChange;
use crate::services::observe::session_rows::SessionHolds;
use crate::services::observe::*;
use fencing_lock::servers::{
    CREATE_POSTGRES_LEASES, PostgresConnection, connect_postgres, postgres_problem,
};
use serde::de::DeserializeOwned;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_postgres::Notification;
use tokio_postgres::types::Type;
use uuid::Uuid;

/// Watches one Postgres: a trigger reports every change of a lease, and sessions report the
/// advisory locks that they are granted and release.
///
/// A lease that expires changes nothing at the server. Its `expired` is the time at which
/// somebody else was granted the lock, or its own holder gave it back too late. The `expired` of an
/// advisory lock is the time at which its session was seen to be gone.
pub async fn observe_postgres(watch: Watch<'_>, layout: Layout) -> Result<(), LockProblem> {
    if !layout.is_own() {
        let what = "only this program's own locks can be watched in a Postgres";
        return Err(LockProblem::Refused(what.to_owned()));
    }
    let mut ready = Some(watch.ready);
    let connection = connect_postgres(watch.address, STEP_TIMEOUT, |_| {}).await?;
    // A replica grants nothing, and nobody can listen to it, until it is promoted.
    while text(&connection, "SELECT pg_is_in_recovery()::text").await? == "true" {
        if let Some(ready) = ready.take() {
            let _ = ready.send(version(&connection).await?);
        }
        tokio::select! {
            () = watch.stop.cancelled() => return Ok(()),
            () = sleep(LOOK_EVERY) => {}
        }
    }
    let mut observer = Observer::begin(watch.address, watch.node, layout).await?;
    if let Some(ready) = ready {
        // The caller may have stopped waiting, but the rows are still wanted.
        let _ = ready.send(version(&connection).await?);
    }
    drop(connection);
    observer.watch(&watch.events, watch.stop).await
}

async fn version(connection: &PostgresConnection) -> Result<String, LockProblem> {
    let said = text(connection, "SHOW server_version").await?;
    Ok(said.split(' ').next().unwrap_or_default().to_owned())
}

async fn text(connection: &PostgresConnection, question: &str) -> Result<String, LockProblem> {
    let rows = in_time(connection.query_typed(question, &[])).await?;
    let said = rows.first().and_then(|row| row.try_get::<_, &str>(0).ok());
    Ok(said.unwrap_or_default().to_owned())
}

const WAITING_REPORTS: usize = 4096;
/// The channels on which reports come in: of leases, and of advisory locks.
const LEASES: &str = "fencepost_observed";
const ADVISORY: &str = "fencing_lock_observed";
/// How the text begins by which an observer finds its own end.
const END: &str = "end ";
/// The end of a session cannot be awaited. It is looked for only while a session holds a lock.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ALIVE: &str = "SELECT pid FROM pg_stat_activity WHERE pid = ANY($1)";

struct Observer {
    node: String,
    layout: Layout,
    /// The text that no report before ours has.
    end: String,
    connection: PostgresConnection,
    reports: mpsc::Receiver<Report>,
    advisory: SessionHolds<i32>,
    /// The time of the latest row.
    latest_ns: u64,
}

/// A report, and when it came.
type Report = (u64, Notification);

impl Observer {
    async fn begin(address: &str, node: &str, layout: Layout) -> Result<Observer, LockProblem> {
        let (send, reports) = mpsc::channel(WAITING_REPORTS);
        let mut send = Some(send);
        let hears = move |word: Notification| {
            let report = (raw_monotonic_ns(), word);
            // A watch that falls so far behind ends, because the record would have a gap.
            send = send.take().filter(|send| send.try_send(report).is_ok());
        };
        let observer = Observer {
            node: node.to_owned(),
            layout,
            end: format!("{END}{}", Uuid::new_v4()),
            connection: connect_postgres(address, STEP_TIMEOUT, hears).await?,
            reports,
            advisory: SessionHolds::new(node),
            latest_ns: 0,
        };
        // A worker may create the same in this moment, and the second try finds it.
        if observer.ask(CREATE_POSTGRES_LEASES).await.is_err() {
            observer.ask(CREATE_POSTGRES_LEASES).await?;
        }
        observer.ask(include_str!("observe_leases.sql")).await?;
        if !observer.layout.is_guest() {
            let sessions = include_str!("observe_sessions.sql");
            observer.ask(sessions).await?;
        }
        Ok(observer)
    }

    /// Watches until the end that `stop` asks for has come through the same stream as
    /// everything before it.
    async fn watch(
        &mut self,
        events: &mpsc::Sender<LockEvent>,
        stop: CancellationToken,
    ) -> Result<(), LockProblem> {
        // It lives longer than one turn, so that many reports cannot put it off for ever.
        let mut next_look = interval(LOOK_EVERY);
        next_look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let sessions = self.advisory.sessions();
            let flow = tokio::select! {
                report = self.reports.recv() => self.heard(report, events).await?,
                () = stop.cancelled() => break,
                _ = next_look.tick(), if !sessions.is_empty() => {
                    self.look(sessions, events).await?
                }
            };
            if flow.is_break() {
                return Ok(());
            }
        }
        self.ask(&format!("NOTIFY {LEASES}, '{}'", self.end))
            .await?;
        let until_end = async {
            loop {
                let report = self.reports.recv().await;
                if self.heard(report, events).await?.is_break() {
                    return Ok(());
                }
            }
        };
        let ended = timeout(STEP_TIMEOUT, until_end).await;
        ended.unwrap_or_else(|_| Err(no_answer("the end did not come")))
    }

    async fn heard(
        &mut self,
        report: Option<Report>,
        events: &mpsc::Sender<LockEvent>,
    ) -> Result<ControlFlow<()>, LockProblem> {
        let (at_ns, word) = report.ok_or_else(|| no_answer("the connection ended"))?;
        let at_ns = self.in_order(at_ns);
        let text = word.payload();
        let mut rows = match word.channel() {
            _ if text == self.end => return Ok(ControlFlow::Break(())),
            // Another observer of the same database ends.
            LEASES if text.starts_with(END) => return Ok(ControlFlow::Continue(())),
            ADVISORY => self.advisory.changed(at_ns, word.process_id(), read(text)?),
            _ => read::<LeaseChange>(text)?.rows(at_ns, &self.node),
        };
        // Other runs in the same database report on the same channels.
        rows.retain(|row| self.layout.has(&row.key));
        Ok(send(events, rows).await)
    }

    /// Looks which of these sessions are gone.
    async fn look(
        &mut self,
        mut sessions: Vec<i32>,
        events: &mpsc::Sender<LockEvent>,
    ) -> Result<ControlFlow<()>, LockProblem> {
        let asked = (&sessions as _, Type::INT4_ARRAY);
        let alive = in_time(self.connection.query_typed(ALIVE, &[asked])).await?;
        let alive: Vec<i32> = alive.iter().filter_map(|row| row.try_get(0).ok()).collect();
        sessions.retain(|session| !alive.contains(session));
        // What a session reported before its end has come before the answer.
        while let Ok(report) = self.reports.try_recv() {
            if self.heard(Some(report), events).await?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let at_ns = self.in_order(raw_monotonic_ns());
        let mut rows = self.advisory.over(at_ns, &sessions);
        rows.retain(|row| self.layout.has(&row.key));
        Ok(send(events, rows).await)
    }

    /// Returns the time of a row. A report waits for a moment before it is read, and rows are
    /// in the order of their times.
    fn in_order(&mut self, at_ns: u64) -> u64 {
        self.latest_ns = self.latest_ns.max(at_ns);
        self.latest_ns
    }

    async fn ask(&self, statements: &str) -> Result<(), LockProblem> {
        in_time(self.connection.batch_execute(statements)).await
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, LockProblem> {
    serde_json::from_str(text).map_err(|error| LockProblem::BadAnswer(error.to_string()))
}

fn no_answer(why: &str) -> LockProblem {
    LockProblem::NoAnswer(why.to_owned())
}

async fn in_time<T>(
    step: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, LockProblem> {
    match timeout(STEP_TIMEOUT, step).await {
        Ok(answer) => answer.map_err(postgres_problem),
        Err(_) => Err(no_answer("nothing within 5 s")),
    }
}
