//! The real backends in a world that is played: no sockets, no real time, and every choice
//! from a seed. The same seed sends the same bytes at the same times.

#![cfg(feature = "redis")]

#[cfg(feature = "etcd")]
mod on_etcd;
mod on_redis;
#[cfg(feature = "redlock")]
mod on_redlock;
mod peer;
mod world;

use fencing_lock::{LockBackend, LockClient, LockMetrics, LockSettings};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;
use world::Seeded;

const TTL: Duration = Duration::from_secs(3);

/// Plays something twice with one seed and once with another, and returns what was sent
/// in each of the two worlds.
fn play<F>(scene: impl Fn(Arc<Seeded>) -> F) -> [Vec<String>; 2]
where
    F: Future<Output = ()>,
{
    let once = |seed| {
        // It has no driver for sockets: who opens a real one panics.
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let world = Arc::new(Seeded::new(seed));
            scene(world.clone()).await;
            // What was left to the background comes to its end.
            sleep(Duration::from_secs(10)).await;
            world.sent()
        })
    };
    let [first, again, another] = [7, 7, 8].map(once);
    assert!(!first.is_empty());
    assert_eq!(first, again, "one seed, two plays");
    [first, another]
}

fn client(backend: impl LockBackend + 'static, seed: u64) -> LockClient {
    let settings = LockSettings { ttl: TTL, seed };
    LockClient::new(Arc::new(backend), settings, LockMetrics::default()).unwrap()
}

/// Returns the words that look like names drawn at random.
fn names(sent: &[String]) -> Vec<&str> {
    let words = sent.iter().flat_map(|line| line.split([' ', ':']));
    let dashes = |word: &str| word.bytes().filter(|&byte| byte == b'-').count();
    words
        .filter(|word| word.len() == 36 && dashes(word) == 4)
        .collect()
}

fn no_name_is_in_both([one, other]: &[Vec<String>; 2]) {
    let (one, other) = (names(one), names(other));
    assert!(!one.is_empty() && !other.is_empty());
    assert!(one.iter().all(|name| !other.contains(name)));
}
