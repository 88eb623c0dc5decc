//! Tests one direction with a clock that moves only when every task waits.

use super::super::link::{Link, Reset};
use super::super::luck::Luck;
use super::super::metrics::Counted;
use super::super::toxics::Toxics;
use super::{bandwidth, latency};
use crate::{Stream, Toxic, ToxicKind};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

struct Kit {
    toxics: Arc<Toxics>,
    source: DuplexStream,
    destination: DuplexStream,
    link: JoinHandle<Result<(), Reset>>,
}

fn link(connection: u64) -> Kit {
    let toxics = Arc::new(Toxics::new());
    let (source, mut from) = duplex(1 << 10);
    let (mut to, destination) = duplex(1 << 10);
    let subscribed = toxics.subscribe(Stream::Upstream);
    let link = tokio::spawn(async move {
        let luck = Luck::new(7, "p", connection, Stream::Upstream);
        let (counted, heard) = (Counted::default(), AtomicBool::new(false));
        let link = Link::new(&mut from, &mut to, subscribed, luck, counted, &heard);
        link.with_coarse_alarm().run().await.map(drop)
    });
    Kit {
        toxics,
        source,
        destination,
        link,
    }
}

impl Kit {
    fn add(&self, kind: ToxicKind) -> Toxic {
        let toxic = Toxic::new(Stream::Upstream, kind);
        self.toxics.add(toxic).expect("a new toxic")
    }

    async fn say(&mut self, text: &str) {
        self.source.write_all(text.as_bytes()).await.unwrap();
    }

    async fn hears(&mut self, text: &str) {
        let mut heard = vec![0; text.len()];
        self.destination.read_exact(&mut heard).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&heard), text);
    }

    async fn hears_nothing_for(&mut self, time: Duration) {
        let mut byte = [0];
        let read = timeout(time, self.destination.read(&mut byte)).await;
        assert!(read.is_err(), "{read:?} {byte:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_toxics_everything_passes_and_the_end_too() {
    let mut kit = link(1);
    kit.say("hello").await;
    kit.hears("hello").await;
    kit.source.shutdown().await.unwrap();
    assert_eq!(kit.link.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn latency_comes_and_goes_on_a_live_link() {
    let mut kit = link(1);
    kit.say("a").await;
    kit.hears("a").await;
    let toxic = kit.add(latency(500, 0));
    let start = Instant::now();
    kit.say("b").await;
    kit.hears("b").await;
    assert!(start.elapsed() >= Duration::from_millis(500));
    kit.say("c").await;
    tokio::task::yield_now().await;
    kit.toxics.remove(&toxic.name).unwrap();
    kit.hears("c").await;
    assert!(start.elapsed() < Duration::from_millis(600), "at once");
}

#[tokio::test(start_paused = true)]
async fn a_toxic_is_in_force_for_every_byte_after_it_was_added() {
    let mut kit = link(1);
    for round in 0..100 {
        kit.say("a").await;
        kit.hears("a").await;
        let toxic = kit.add(bandwidth(0));
        kit.say("b").await;
        kit.hears_nothing_for(Duration::from_secs(round)).await;
        kit.toxics.remove(&toxic.name).unwrap();
        kit.hears("b").await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_link_stops_reading_and_forgets_nothing() {
    let mut kit = link(1);
    let toxic = kit.add(bandwidth(0));
    let block = "x".repeat(1 << 10);
    let mut said = 0;
    while let Ok(()) = timeout(Duration::from_secs(1), kit.say(&block)).await {
        said += 1;
        assert!(said < 200, "a bounded number of bytes is taken in");
    }
    kit.toxics.remove(&toxic.name).unwrap();
    for _ in 0..said {
        kit.hears(&block).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_reset_ends_the_link_with_a_reset() {
    let mut kit = link(1);
    kit.add(ToxicKind::ResetPeer { timeout_ms: 1_000 });
    kit.say("lost").await;
    kit.hears_nothing_for(Duration::from_millis(999)).await;
    assert_eq!(kit.link.await.unwrap(), Err(Reset));
}

#[tokio::test(start_paused = true)]
async fn jitter_is_the_same_with_the_same_seed() {
    async fn times(connection: u64) -> Vec<u128> {
        let mut kit = link(connection);
        kit.add(latency(500, 400));
        let mut times = Vec::new();
        for _ in 0..10 {
            let start = Instant::now();
            kit.say("x").await;
            kit.hears("x").await;
            times.push(start.elapsed().as_millis());
        }
        times
    }
    let once = times(1).await;
    assert_eq!(once, times(1).await);
    assert_ne!(once, times(2).await, "another connection has another luck");
    assert!(once.iter().all(|ms| (100..=901).contains(ms)), "{once:?}");
}
