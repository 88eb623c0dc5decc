use crate::services::observe::session_rows::{SessionChange, SessionHolds};
use crate::services::observe::*;
use fencing_lock::servers::{
    CREATE_MARIADB_TOKENS, MariadbConnection, connect_mariadb, mariadb_problem,
};
use tokio::time::{MissedTickBehavior, interval};

/// Watches one MariaDB: triggers write every grant down, and sessions their releases.
///
/// The server announces nothing, so this reads again and again what was written down. Nothing is
/// missed between two readings, and a row has the time at which it was written by the server's own
/// count, so it is not late by the time between them. The `expired` of a lock is the time at which
/// its session was seen to be gone, or somebody else was granted the lock.
pub async fn observe_mariadb(watch: Watch<'_>, layout: Layout) -> Result<(), LockProblem> {
    if !layout.is_own() {
        let what = "only this program's own locks can be watched in a MariaDB";
        return Err(LockProblem::Refused(what.to_owned()));
    }
    let mut observer = Observer::begin(&watch).await?;
    let version = observer.ask("SELECT VERSION()").await?;
    let version = version.first().and_then(|row| row.get::<String, _>(0));
    let version = version.as_deref().and_then(|it| it.split('-').next());
    // The caller may have stopped waiting, but the rows are still wanted.
    let _ = watch.ready.send(version.unwrap_or_default().to_owned());
    let watched = observer.watch(&watch.events, watch.stop).await;
    // An observer that is gone must not cost the locks anything.
    for statement in END {
        observer.ask(statement).await?;
    }
    watched
}

const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Whoever reads a report removes it, so there is one observer of a database. An earlier one whose
/// connection has just ended is waited for.
const ALONE: &str = "SELECT GET_LOCK(CONCAT('fencepost:', MD5(DATABASE())), 3)";
const CREATE: &str = include_str!("observe.sql");
const END: [&str; 3] = [
    "DROP TRIGGER IF EXISTS fencepost_first_grant",
    "DROP TRIGGER IF EXISTS fencepost_next_grant",
    "DROP TABLE IF EXISTS fencing_lock_observed",
];
const READ: &str = "DELETE FROM fencing_lock_observed ORDER BY id
    RETURNING id, TIMESTAMPDIFF(MICROSECOND, at, SYSDATE(6)), lock_key, owner, token, session";

struct Observer {
    connection: MariadbConnection,
    holds: SessionHolds<u64>,
    /// The number of the next report, once there was one.
    next: Option<u64>,
    /// The time of the latest row.
    latest_ns: u64,
    /// When it was read before: what comes now is younger.
    read_at_ns: u64,
}

impl Observer {
    async fn begin(watch: &Watch<'_>) -> Result<Observer, LockProblem> {
        let observer = Observer {
            connection: connect_mariadb(watch.address, STEP_TIMEOUT).await?,
            holds: SessionHolds::new(watch.node),
            next: None,
            latest_ns: 0,
            read_at_ns: raw_monotonic_ns(),
        };
        let alone = observer.ask(ALONE).await?;
        if alone.first().and_then(|row| row.get::<u8, _>(0)) != Some(1) {
            let what = "another observer watches this database; end it first";
            return Err(LockProblem::Refused(what.to_owned()));
        }
        observer.ask(CREATE_MARIADB_TOKENS).await?;
        observer.ask(CREATE).await?;
        for (name, event) in [
            ("fencepost_first_grant", "INSERT"),
            ("fencepost_next_grant", "UPDATE"),
        ] {
            observer.ask(trigger(name, event)).await?;
        }
        Ok(observer)
    }

    async fn watch(
        &mut self,
        events: &mpsc::Sender<LockEvent>,
        stop: CancellationToken,
    ) -> Result<(), LockProblem> {
        let mut next_look = interval(LOOK_EVERY);
        next_look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_last = tokio::select! {
                biased;
                () = stop.cancelled() => true,
                _ = next_look.tick() => false,
            };
            if self.look(events).await?.is_break() || is_last {
                return Ok(());
            }
        }
    }

    /// Reads what was written down, and looks which sessions are gone.
    async fn look(
        &mut self,
        events: &mpsc::Sender<LockEvent>,
    ) -> Result<ControlFlow<()>, LockProblem> {
        // What a session wrote down before its end is read after this.
        let gone = self.gone().await?;
        let began_ns = raw_monotonic_ns();
        let reports = self.ask(READ).await?;
        let now_ns = raw_monotonic_ns();
        let mut reports: Vec<Report> = reports
            .into_iter()
            .map(Report::read)
            .collect::<Option<_>>()
            .ok_or_else(|| LockProblem::BadAnswer("no report".to_owned()))?;
        reports.sort_by_key(|report| report.id);
        for report in reports {
            if self.next.is_some_and(|next| next != report.id) {
                let what = "reports were lost: another observer reads them, or too many waited";
                return Err(LockProblem::BadAnswer(what.to_owned()));
            }
            self.next = Some(report.id + 1);
            // A clock that was set in between says nothing.
            let at_ns = now_ns.saturating_sub(report.age_ns);
            let at_ns = self.in_order(at_ns.clamp(self.read_at_ns, now_ns));
            let rows = self.holds.changed(at_ns, report.session, report.change);
            if send(events, rows).await.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        self.read_at_ns = began_ns;
        let at_ns = self.in_order(now_ns);
        let rows = self.holds.over(at_ns, &gone);
        Ok(send(events, rows).await)
    }

    /// Returns those of the holders' sessions that are over.
    async fn gone(&self) -> Result<Vec<u64>, LockProblem> {
        let mut sessions = self.holds.sessions();
        if sessions.is_empty() {
            return Ok(sessions);
        }
        let numbers: Vec<String> = sessions.iter().map(u64::to_string).collect();
        let alive = format!(
            "SELECT ID FROM information_schema.PROCESSLIST WHERE ID IN ({})",
            numbers.join(", ")
        );
        let alive = self.ask(alive).await?;
        let alive: Vec<u64> = alive.iter().filter_map(|row| row.get(0)).collect();
        sessions.retain(|session| !alive.contains(session));
        Ok(sessions)
    }

    /// Returns the time of a row: rows are in the order of their times.
    fn in_order(&mut self, at_ns: u64) -> u64 {
        self.latest_ns = self.latest_ns.max(at_ns);
        self.latest_ns
    }

    async fn ask(
        &self,
        statement: impl Into<String>,
    ) -> Result<Vec<mysql_async::Row>, LockProblem> {
        match timeout(STEP_TIMEOUT, self.connection.ask(statement)).await {
            Ok(answer) => answer.map_err(mariadb_problem),
            Err(_) => Err(LockProblem::NoAnswer("nothing within 5 s".to_owned())),
        }
    }
}

/// Returns the statement that has every grant written down. One that cannot be written down is
/// still granted: its number is missing then.
fn trigger(name: &str, event: &str) -> String {
    format!(
        "CREATE OR REPLACE TRIGGER {name} AFTER {event} ON fencing_lock_tokens FOR EACH ROW BEGIN
            DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN END;
            SET @fencing_lock_observed = 1;
            INSERT INTO fencing_lock_observed (at, lock_key, owner, token, session)
                VALUES (SYSDATE(6), NEW.lock_key, NEW.owner, NEW.token, NEW.session);
        END"
    )
}

struct Report {
    id: u64,
    age_ns: u64,
    session: u64,
    change: SessionChange,
}

impl Report {
    fn read(row: mysql_async::Row) -> Option<Report> {
        let text = |column| {
            let bytes: Option<Vec<u8>> = row.get(column);
            bytes.map(|bytes| readable(&bytes))
        };
        let (key, owner) = (text(2)?, text(3)?);
        let age_us: i64 = row.get(1)?;
        Some(Report {
            id: row.get(0)?,
            age_ns: u64::try_from(age_us).unwrap_or(0) * 1_000,
            session: row.get(5)?,
            change: match row.get::<Option<u64>, _>(4)? {
                Some(token) => SessionChange::Granted { key, owner, token },
                None => SessionChange::Released { key, owner },
            },
        })
    }
}
