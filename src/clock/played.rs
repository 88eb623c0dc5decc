use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

thread_local! {
    /// The beginning of the time that is played on this thread.
    static BEGAN_AT: Cell<Option<Instant>> = const { Cell::new(None) };
    /// What the played clock was last read as.
    static LAST_NS: Cell<u64> = const { Cell::new(0) };
    /// How wrong the clocks of the process are that runs now.
    static AHEAD: Cell<ClocksAhead> = const { Cell::new(ClocksAhead { realtime_ns: 0, monotonic_ns: 0 }) };
    /// The process that runs now wants to stand still for so long.
    static STANDSTILL: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// The played clock reads this at its beginning, so that no time of a record is 0.
const BEGINNING_NS: u64 = 1_000_000_000;
/// A played wall clock is ahead of the other by this.
const WALL_AHEAD_NS: i64 = 1_700_000_000_000_000_000;

/// How far the clocks of a played process are ahead of those of its machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClocksAhead {
    pub realtime_ns: i64,
    pub monotonic_ns: i64,
}

/// Reads a clock that nobody can skew, in nanoseconds. In a simulation, which plays on one thread,
/// it is the clock of its runtime, and it never reads the same twice: what comes later is later in
/// the record.
pub fn raw_monotonic_ns() -> u64 {
    let Some(began_at) = BEGAN_AT.get() else {
        return vdso_clock::raw_monotonic_ns();
    };
    let now_ns = BEGINNING_NS + ns(began_at.elapsed());
    LAST_NS.set(now_ns.max(LAST_NS.get() + 1));
    LAST_NS.get()
}

/// Reads the wall clock of this machine, in nanoseconds since 1970.
pub fn wall_clock_ns() -> i64 {
    match BEGAN_AT.get() {
        None => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH);
            since.unwrap_or_default().as_nanos() as i64
        }
        Some(_) => WALL_AHEAD_NS + raw_monotonic_ns() as i64,
    }
}

/// Reads the clocks of this process as its programs see them: realtime and monotonic, in
/// nanoseconds.
pub fn own_clocks_ns() -> (i64, i64) {
    if BEGAN_AT.get().is_none() {
        return vdso_clock::own_clocks_ns();
    }
    let ahead = AHEAD.get();
    (
        wall_clock_ns() + ahead.realtime_ns,
        raw_monotonic_ns() as i64 + ahead.monotonic_ns,
    )
}

/// Lets the whole process stand still, as a garbage collector would.
pub async fn stand_still(length: Duration) {
    if BEGAN_AT.get().is_none() {
        return std::thread::sleep(length);
    }
    let mut stood = false;
    poll_fn(|_| {
        if std::mem::replace(&mut stood, true) {
            return Poll::Ready(());
        }
        // Nobody polls the process before its time is over, and then somebody does.
        STANDSTILL.set(Some(length));
        Poll::Pending
    })
    .await;
}

fn ns(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

/// Makes this thread read the clock of its runtime, which has to be paused, until this is dropped.
pub struct PlayedClock(());

impl PlayedClock {
    pub fn begin() -> PlayedClock {
        BEGAN_AT.set(Some(Instant::now()));
        LAST_NS.set(0);
        PlayedClock(())
    }
}

impl Drop for PlayedClock {
    fn drop(&mut self) {
        BEGAN_AT.set(None);
    }
}

/// Runs a played process for a moment, with clocks of its own. Also returns for how long it
/// wants to stand still.
pub fn as_process<T>(ahead: ClocksAhead, work: impl FnOnce() -> T) -> (T, Option<Duration>) {
    let outer = AHEAD.replace(ahead);
    let done = work();
    AHEAD.set(outer);
    (done, STANDSTILL.take())
}
