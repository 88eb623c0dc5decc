//! Waits that are cancelled and leases that are dropped leave nothing behind.

use super::kit::*;
use crate::support::{consul_address, docker_shared, times};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const AT_ONCE: usize = 10;

/// Some are cut off in the middle of a request that would be granted, some in a wait, some while
/// they are woken, and some while they hold.
#[tokio::test]
async fn hundreds_of_cancelled_waits_and_dropped_leases_leave_no_lock() {
    let _turn = docker_shared();
    let (locks, metrics) = locks(LONG);
    let keys: Vec<String> = (0..3).map(|_| unique_key()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut waits = JoinSet::new();
    for n in 0..times(200, 10_000) {
        let (locks, key) = (locks.clone(), keys[n % 3].clone());
        let patience = Duration::from_micros(random.u64(0..60_000));
        waits.spawn(async move {
            let holding = async {
                let _lease = locks.acquire(&key, Instant::now() + LONG).await;
                sleep(Duration::from_millis(1)).await;
            };
            // Whatever it is doing when the time is over is dropped.
            let _cut_off = timeout(patience, holding).await;
        });
        if waits.len() >= AT_ONCE {
            waits.join_next().await;
        }
    }
    waits.join_all().await;
    for key in &keys {
        until_free(&consul_address(), key).await;
    }
    assert_eq!(metrics.leases_held.get(), 0);
    assert_eq!(metrics.queue_length.get(), 0);
}
