//! The promises of every backend: one holder at a time, and tokens that grow, whatever happens
//! to single servers.

use fencing_lock::LockClient;
use fencing_lock::ReleaseOutcome;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

const KEYS: usize = 20;
/// This is longer than any restart takes, including elections and expiring TTLs.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the larger number if a long test is wanted: `just soak-locks`.
pub fn times(normal: usize, soak: usize) -> usize {
    match std::env::var_os("FENCEPOST_SOAK") {
        Some(_) => soak,
        None => normal,
    }
}

/// Checks that no two clients hold a key at the same time, if each acquires it once and none is
/// paused.
pub async fn contenders_exclude_each_other(key: &str, clients: Vec<LockClient>) {
    let mut contenders = JoinSet::new();
    for locks in clients {
        let key = key.to_owned();
        contenders.spawn(async move {
            let lease = locks.acquire(&key, Instant::now() + PATIENCE).await;
            let lease = lease.unwrap();
            let from = Instant::now();
            sleep(Duration::from_millis(5)).await;
            let hold = (from, Instant::now(), lease.fence());
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
            hold
        });
    }
    let mut holds = contenders.join_all().await;
    holds.sort_by_key(|(from, ..)| *from);
    for pair in holds.windows(2) {
        assert!(pair[0].1 <= pair[1].0, "two holds overlap");
        assert!(pair[0].2 < pair[1].2, "an older token came later");
    }
}

/// Acquires many keys at once, with the clients taking turns on each, and spreads the restarts
/// over the grants.
pub async fn tokens_only_grow(clients: Vec<LockClient>, restarts: Vec<Box<dyn FnOnce() + Send>>) {
    let wanted = times(2_000, 1_000_000);
    let clients: Arc<[LockClient]> = clients.into();
    let granted = watch::Sender::new(0);
    let mut chains = JoinSet::new();
    for _ in 0..KEYS {
        let (clients, granted) = (clients.clone(), granted.clone());
        chains.spawn(async move {
            let key = format!("test-{}", Uuid::new_v4());
            let mut last = 0;
            for turn in 0..wanted / KEYS {
                let locks = &clients[turn % clients.len()];
                let lease = locks
                    .acquire(&key, Instant::now() + PATIENCE)
                    .await
                    .unwrap();
                assert!(lease.fence().0 > last, "{} after {last}", lease.fence());
                last = lease.fence().0;
                // The release may fail: a server may be down at that moment.
                lease.release().await;
                granted.send_modify(|granted| *granted += 1);
            }
        });
    }
    let mut progress = granted.subscribe();
    let step = wanted / (restarts.len() + 1);
    let restarting = async {
        for (number, restart) in restarts.into_iter().enumerate() {
            let enough = |granted: &usize| *granted >= step * (number + 1);
            progress.wait_for(enough).await.unwrap();
            spawn_blocking(restart).await.unwrap();
        }
    };
    tokio::join!(restarting, chains.join_all());
    assert_eq!(*granted.borrow(), wanted);
}
