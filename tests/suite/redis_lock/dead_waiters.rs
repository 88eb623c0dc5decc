//! Those who stand in the line and are not there any more, or not awake.

use super::kit::*;
use crate::support::{docker_shared, redis_address};
use fencepost::model::{FencingToken, WaitPolicy};
use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use std::sync::mpsc;
use std::time::Duration;
use tokio::runtime;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};

/// A hand-over that had to wait for nobody's TTL: each of them is longer.
const AT_ONCE: Duration = Duration::from_secs(2);

#[tokio::test]
async fn a_waiter_whose_process_died_is_passed_over_at_once() {
    let _turn = docker_shared();
    let key = unique_key();
    let mut redis = redis_connection().await;
    let held = queue(LONG).acquire(&key, soon()).await.unwrap();

    // All that a process has in the runtime ends without a last word.
    let process = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let dying_key = key.clone();
    process.spawn(async move { queue(LONG).acquire(&dying_key, Instant::now() + LONG).await });
    until_in_line(&mut redis, &key, 1).await;
    let listens_on = channel_of_the_only_waiter(&mut redis, &key).await;
    let waiter = tokio::spawn({
        let key = key.clone();
        async move { queue(LONG).acquire(&key, Instant::now() + LONG).await }
    });
    until_in_line(&mut redis, &key, 2).await;
    process.shutdown_background();
    until_subscribers(&mut redis, &listens_on, 0).await;

    held.release().await;
    let lease = timeout(AT_ONCE, waiter).await.expect("at once");
    lease.unwrap().unwrap().release().await;
    until_nothing_left(&mut redis, &key).await;
}

#[tokio::test]
async fn a_waiter_that_is_frozen_for_a_ttl_is_passed_over_and_may_come_back() {
    let _turn = docker_shared();
    let ttl = 3 * SECOND;
    let key = unique_key();
    let mut redis = redis_connection().await;
    let held = queue(LONG).acquire(&key, soon()).await.unwrap();

    let mut sleeper = Sleeper::wait_for(&key, ttl);
    until_in_line(&mut redis, &key, 1).await;
    let waiter = tokio::spawn({
        let key = key.clone();
        async move { queue(LONG).acquire(&key, Instant::now() + LONG).await }
    });
    until_in_line(&mut redis, &key, 2).await;
    let frozen_at = sleeper.freeze().await;
    sleep_until(frozen_at + ttl + Duration::from_millis(50)).await;

    held.release().await;
    let lease = timeout(AT_ONCE, waiter).await.expect("at once");
    let lease = lease.unwrap().unwrap();
    sleeper.thaw.send(()).unwrap();
    let token = lease.fence();
    lease.release().await;
    let later = timeout(5 * SECOND, sleeper.granted).await.unwrap().unwrap();
    assert!(later > token, "it lined up again");
    until_nothing_left(&mut redis, &key).await;
}

/// A process with one thread that waits for a lock.
struct Sleeper {
    freeze: Option<oneshot::Sender<oneshot::Sender<Instant>>>,
    thaw: mpsc::Sender<()>,
    granted: oneshot::Receiver<FencingToken>,
}

impl Sleeper {
    fn wait_for(key: &str, ttl: Duration) -> Sleeper {
        let (freeze, frozen) = oneshot::channel::<oneshot::Sender<Instant>>();
        let (thaw, thawed) = mpsc::channel();
        let (tell, granted) = oneshot::channel();
        let key = key.to_owned();
        std::thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let locks = queue(ttl);
                let freezing = async {
                    let _ = frozen.await.unwrap().send(Instant::now());
                    // Nothing else of this runtime moves meanwhile.
                    thawed.recv().unwrap();
                };
                let waiting = locks.acquire(&key, Instant::now() + LONG);
                let (lease, ()) = tokio::join!(waiting, freezing);
                let lease = lease.unwrap();
                let _ = tell.send(lease.fence());
                lease.release().await;
            });
        });
        Sleeper {
            freeze: Some(freeze),
            thaw,
            granted,
        }
    }

    /// Says when it stopped moving.
    async fn freeze(&mut self) -> Instant {
        let (tell, frozen_at) = oneshot::channel();
        self.freeze.take().unwrap().send(tell).unwrap();
        frozen_at.await.unwrap()
    }
}

fn queue(ttl: Duration) -> fencing_lock::LockClient {
    locks_at(&redis_address(), waiting_by(WaitPolicy::Queue), ttl).0
}

async fn channel_of_the_only_waiter(redis: &mut MultiplexedConnection, key: &str) -> String {
    let known: Vec<String> = redis.hvals(format!("waiters:{{{key}}}")).await.unwrap();
    let (_, channel) = known[0].rsplit_once(' ').unwrap();
    channel.to_owned()
}
