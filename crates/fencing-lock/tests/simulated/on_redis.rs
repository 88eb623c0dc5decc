use super::peer::Answer::{self, Reply, Unknown};
use super::peer::Line::{HandOver, HangUp, Say};
use super::world::Seeded;
use super::{TTL, client, names, no_name_is_in_both, play};
use fencing_lock::{LockClient, RedisBackend, RedisSettings, WaitPolicy, keep_renewed};
use futures_util::future::join_all;
use std::iter;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

const BUSY_FOR_A_SECOND: Answer = Reply(2, &[1_000]);
const FIRST_GRANT: Answer = Reply(1, &[1]);
const YES: Answer = Reply(1, &[]);

/// The hold of somebody else ends in a second; the counter is 6.
const IN_LINE: Answer = Reply(3, &[6, 1_000]);
const GRANTED: Answer = Reply(1, &[7]);

const WAITERS: usize = 20;

fn locks(world: &Arc<Seeded>, wait: WaitPolicy) -> LockClient {
    let settings = RedisSettings {
        wait,
        ..RedisSettings::default()
    };
    let backend = RedisBackend::with_env("redis:6379", settings, world.env()).unwrap();
    client(backend, world.seed)
}

fn soon() -> Instant {
    Instant::now() + 10 * TTL
}

async fn spin(world: Arc<Seeded>) {
    let waits = [Unknown, BUSY_FOR_A_SECOND, BUSY_FOR_A_SECOND, FIRST_GRANT];
    let renewals_and_release = [YES; 4];
    let lines = waits.into_iter().chain(renewals_and_release);
    world.host("redis", lines.map(Say));
    let locks = locks(&world, WaitPolicy::Spin);
    let lease = locks.acquire("k", soon()).await.unwrap();
    assert_eq!(lease.fence().0, 1);
    // Three renewals are due in that time, whatever their jitter is.
    let renewing = timeout(TTL, keep_renewed(&lease, || {}));
    assert!(renewing.await.is_err(), "not lost");
    // The release is left to the background.
    drop(lease);
}

async fn queue(world: Arc<Seeded>) {
    let handed = HandOver {
        first: IN_LINE,
        after: Duration::from_millis(30),
        token: 7,
    };
    world.host("redis", [handed, Say(YES)]);
    let began_at = Instant::now();
    let locks = locks(&world, WaitPolicy::Queue);
    let lease = locks.acquire("k", soon()).await.unwrap();
    assert_eq!(lease.fence().0, 7);
    assert_eq!(began_at.elapsed(), Duration::from_millis(30));
    lease.release().await;
}

/// Many wait on one connection, which ends; each comes back to its place.
async fn come_back(world: Arc<Seeded>) {
    let end = HangUp {
        first: IN_LINE,
        after: Duration::from_millis(30),
    };
    let waits = iter::repeat_n(Say(IN_LINE), WAITERS - 1).chain([end]);
    let grants = iter::repeat_n(Say(GRANTED), WAITERS);
    let releases = iter::repeat_n(Say(YES), WAITERS);
    world.host("redis", waits.chain(grants).chain(releases));
    let locks = locks(&world, WaitPolicy::Queue);
    let wait = |_| {
        let locks = locks.clone();
        tokio::spawn(async move { locks.acquire("k", soon()).await })
    };
    // Each is a task of its own, which is woken by itself.
    let waiting: Vec<_> = (0..WAITERS).map(wait).collect();
    for lease in join_all(waiting).await {
        lease.unwrap().unwrap().release().await;
    }
}

#[test]
fn a_spinning_client_does_the_same_again() {
    let plays = play(spin);
    no_name_is_in_both(&plays);
    let scripts = |sent: &[String]| sent.iter().filter(|line| line.contains(" EVAL")).count();
    assert_eq!(scripts(&plays[0]), 8, "{:#?}", plays[0]);
    // The whole script is sent for the one that was not known, and each try has an owner.
    let attempts: Vec<_> = plays[0]
        .iter()
        .filter(|line| line.contains("fence:"))
        .collect();
    assert_eq!(attempts.len(), 4);
    let times = |sent: &[String]| {
        let time = |line: &String| line.split(' ').next().map(str::to_owned);
        sent.iter().map(time).collect::<Vec<_>>()
    };
    assert_ne!(times(&plays[0]), times(&plays[1]), "the jitter is drawn");
}

#[test]
fn a_queueing_client_does_the_same_again() {
    let plays = play(queue);
    no_name_is_in_both(&plays);
    // The channel, and an owner that stands in line and leaves.
    let mut names = names(&plays[0]);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), 2, "{:#?}", plays[0]);
}

#[test]
fn those_whose_connection_ended_come_back_in_the_order_in_which_they_came() {
    let [sent, _] = play(come_back);
    let stand = |line: &&String| line.contains("fence:") && line.contains("waiters:");
    let owners: Vec<_> = sent
        .iter()
        .filter(stand)
        .filter_map(|line| {
            names(std::slice::from_ref(line))
                .first()
                .map(|name| name.to_string())
        })
        .collect();
    assert_eq!(owners[..WAITERS], owners[WAITERS..2 * WAITERS]);
}
