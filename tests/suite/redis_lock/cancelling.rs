//! Waits that are cancelled and leases that are dropped leave nothing behind.

use super::kit::*;
use crate::support::{docker_shared, redis_address, times};
use fencepost::model::WaitPolicy;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

const AT_ONCE: usize = 50;

#[tokio::test]
async fn a_thousand_cancelled_waits_and_dropped_leases_leave_no_key() {
    let _turn = docker_shared();
    let cancellations = times(1_000, 10_000);
    for wait in WaitPolicy::ALL {
        cancel(wait, cancellations).await;
    }
}

/// Some are cut off in the middle of a request that would be granted, some in
/// a wait, some while they are woken, and some while they hold.
async fn cancel(wait: WaitPolicy, cancellations: usize) {
    let (locks, metrics) = locks_at(&redis_address(), waiting_by(wait), LONG);
    let mut redis = redis_connection().await;
    let keys: Vec<String> = (0..3).map(|_| unique_key()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    let mut waits = JoinSet::new();
    for n in 0..cancellations {
        let (locks, key) = (locks.clone(), keys[n % 3].clone());
        let patience = Duration::from_micros(random.u64(0..4_000));
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
        until_nothing_left(&mut redis, key).await;
    }
    assert_eq!(metrics.leases_held.get(), 0, "{wait}");
    assert_eq!(metrics.queue_length.get(), 0, "{wait}");
    // And the lock still works.
    let lease = locks.acquire(&keys[0], soon()).await.unwrap();
    lease.release().await;
    for key in &keys {
        until_subscribers(&mut redis, &format!("freed:{{{key}}}"), 0).await;
    }
}
