//! Many clients that want one key, hold it for no time at all, and want it again.

use crate::Trouble;
use crate::order::{GrantRow, Order};
use crate::peers::{Lock, Peer};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Barrier, Notify};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Not counted: at first all arrive in one moment, in no order at all. It lasts
/// until there were as many grants as contenders, and at least and at most:
const WARM_UP_LEAST: Duration = Duration::from_millis(300);
const WARM_UP_MOST: Duration = Duration::from_secs(15);
/// Everybody who waits is served before this, or is stuck.
const DRAIN_DEADLINE: Duration = Duration::from_secs(20);

struct Arena {
    contenders: usize,
    start: Barrier,
    /// That many grants were made.
    warm: Notify,
    over: AtomicBool,
    arrivals: AtomicU64,
    held: AtomicBool,
    ledger: Mutex<Ledger>,
}

#[derive(Default)]
struct Ledger {
    rows: Vec<GrantRow>,
    last_token: u64,
}

/// An error if two held the lock at once, if a token ran backwards, or if
/// somebody was never served.
pub async fn contest(
    peer: &dyn Peer,
    key: &str,
    contenders: usize,
    length: Duration,
) -> Result<Order, Trouble> {
    let arena = Arc::new(Arena {
        contenders,
        start: Barrier::new(contenders + 1),
        warm: Notify::new(),
        over: AtomicBool::new(false),
        arrivals: AtomicU64::new(0),
        held: AtomicBool::new(false),
        ledger: Mutex::default(),
    });
    peer.prepare(key).await?;
    let mut tasks = JoinSet::new();
    for number in 0..contenders {
        let mut lock = peer.client(key).await?;
        // Connects, and loads whatever has to be loaded.
        lock.acquire().await?;
        lock.release().await?;
        tasks.spawn(contend(lock, number, arena.clone()));
    }
    let (from, to) = tokio::select! {
        window = watch(&arena, length) => window?,
        // Nobody leaves before it is over, except in trouble.
        Some(contender) = tasks.join_next() => {
            contender??;
            return Err("a contender left early".into());
        }
    };
    arena.over.store(true, Ordering::Relaxed);
    let everybody = async {
        while let Some(contender) = tasks.join_next().await {
            contender??;
        }
        Ok::<(), Trouble>(())
    };
    let drained = timeout(DRAIN_DEADLINE, everybody).await;
    drained.map_err(|_| format!("{} contenders wait for ever", tasks.len()))??;
    let ledger = arena.ledger.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(Order::of(&ledger.rows, from, to))
}

/// Starts the contest, lets it warm up, and says which stretch of it counts.
async fn watch(arena: &Arena, length: Duration) -> Result<(Instant, Instant), Trouble> {
    arena.start.wait().await;
    sleep(WARM_UP_LEAST).await;
    let warm = timeout(WARM_UP_MOST, arena.warm.notified()).await;
    warm.map_err(|_| format!("not {} grants within {WARM_UP_MOST:?}", arena.contenders))?;
    let from = Instant::now();
    sleep(length).await;
    Ok((from, Instant::now()))
}

async fn contend(mut lock: Box<dyn Lock>, number: usize, arena: Arc<Arena>) -> Result<(), Trouble> {
    arena.start.wait().await;
    while !arena.over.load(Ordering::Relaxed) {
        let arrival = arena.arrivals.fetch_add(1, Ordering::Relaxed);
        let arrived_at = Instant::now();
        let token = lock.acquire().await?;
        let at = Instant::now();
        let row = GrantRow {
            contender: number,
            arrival,
            waited: at - arrived_at,
            at,
        };
        arena.granted(row, token)?;
        lock.release().await?;
    }
    Ok(())
}

impl Arena {
    fn granted(&self, row: GrantRow, token: Option<u64>) -> Result<(), Trouble> {
        if self.held.swap(true, Ordering::AcqRel) {
            return Err("two held the lock at once".into());
        }
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = token {
            let last = std::mem::replace(&mut ledger.last_token, token);
            if token <= last {
                return Err(format!("token {token} after {last}").into());
            }
        }
        ledger.rows.push(row);
        if ledger.rows.len() == self.contenders {
            self.warm.notify_one();
        }
        drop(ledger);
        self.held.store(false, Ordering::Release);
        Ok(())
    }
}
