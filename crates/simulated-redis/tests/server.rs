//! What no comparison with a real server shows: a clock that is played, restarts, and streams.

use simulated_redis::{Change, Data, Redis, Reply};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const EPOCH_MS: u64 = 1_700_000_000_000;

struct Played {
    redis: Redis,
    now_ms: Arc<AtomicU64>,
}

impl Played {
    fn new() -> Played {
        let now_ms = Arc::new(AtomicU64::new(EPOCH_MS));
        let clock = now_ms.clone();
        let redis = Redis::new(move || Duration::from_millis(clock.load(Ordering::Relaxed)));
        Played { redis, now_ms }
    }

    fn run(&self, command: &str) -> Reply {
        let words: Vec<&str> = command.split(' ').collect();
        self.redis.session().run(&words)
    }

    fn pass(&self, ms: i64) {
        self.now_ms.fetch_add(ms.cast_unsigned(), Ordering::Relaxed);
    }
}

fn text(text: &str) -> Reply {
    Reply::Bulk(text.into())
}

#[test]
fn a_key_ends_by_the_clock_of_its_server_and_by_no_other() {
    let played = Played::new();
    played.run("SET a 1 PX 100");
    assert_eq!(played.run("PTTL a"), Reply::Int(100));
    played.pass(100);
    assert_eq!(played.run("GET a"), text("1"));
    played.pass(1);
    assert_eq!(played.run("GET a"), Reply::Nil);

    played.run("SET a 1 PX 100");
    played.pass(-3_600_000);
    assert_eq!(played.run("PTTL a"), Reply::Int(3_600_100));
    played.pass(3_600_101);
    assert_eq!(played.run("EXISTS a"), Reply::Int(0));
}

#[test]
fn keys_that_nobody_asks_for_end_too_and_the_next_end_is_known() {
    let played = Played::new();
    let changes: Arc<Mutex<Vec<Change>>> = Arc::default();
    let seen = changes.clone();
    played
        .redis
        .watch(move |changes, _| seen.lock().unwrap().extend_from_slice(changes));
    assert_eq!(played.redis.expire(), None);
    played.run("SET a 1 PX 100");
    played.run("SET b 1 PX 300");
    assert_eq!(played.redis.expire(), Some(Duration::from_millis(101)));
    played.pass(101);
    assert_eq!(played.redis.expire(), Some(Duration::from_millis(200)));
    let events: Vec<String> = changes
        .lock()
        .unwrap()
        .iter()
        .map(|change| format!("{} {}", String::from_utf8_lossy(&change.key), change.event))
        .collect();
    assert_eq!(
        events,
        ["a set", "a expire", "b set", "b expire", "a expired"]
    );
}

#[test]
fn a_restart_forgets_scripts_and_settings_and_keys_only_where_they_are_lost() {
    let played = Played::new();
    let load = "SCRIPT LOAD return(1)";
    let Reply::Bulk(hash) = played.run(load) else {
        panic!("no hash");
    };
    let call = format!("EVALSHA {} 0", String::from_utf8(hash).unwrap());
    for (data, then) in [(Data::Kept, text("1")), (Data::Lost, Reply::Nil)] {
        played.run(load);
        played.run("SET a 1 PX 1000");
        assert_eq!(played.run(&call), Reply::Int(1));
        played.redis.restart(data);
        assert_eq!(played.run("GET a"), then, "{data:?}");
        let Reply::Error(error) = played.run(&call) else {
            panic!("{data:?} kept a script");
        };
        assert!(error.starts_with("NOSCRIPT"), "{error}");
    }
}

#[test]
fn the_time_goes_on_while_a_server_is_away() {
    let played = Played::new();
    played.run("SET a 1 PX 100");
    played.redis.restart(Data::Kept);
    played.pass(101);
    assert_eq!(played.run("GET a"), Reply::Nil);
}

#[tokio::test]
async fn a_connection_takes_bytes_in_any_pieces_and_ends_with_its_server() {
    let played = Played::new();
    let (mut ours, theirs) = duplex(3);
    let serving = tokio::spawn(played.redis.serve(theirs));
    ours.write_all(b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n*1\r\n$4\r\nPING\r\n")
        .await
        .unwrap();
    let mut heard = [0; 18];
    ours.read_exact(&mut heard).await.unwrap();
    assert_eq!(&heard, b"$5\r\nhello\r\n+PONG\r\n");
    played.redis.restart(Data::Kept);
    serving.await.unwrap().unwrap();
    assert_eq!(ours.read(&mut heard).await.unwrap(), 0);
}

#[tokio::test]
async fn a_message_reaches_a_connection_that_asks_for_nothing() {
    let played = Played::new();
    let (mut ours, theirs) = duplex(64);
    tokio::spawn(played.redis.serve(theirs));
    ours.write_all(b"*2\r\n$9\r\nSUBSCRIBE\r\n$1\r\nc\r\n")
        .await
        .unwrap();
    let mut heard = vec![0; 30];
    ours.read_exact(&mut heard).await.unwrap();
    assert_eq!(played.run("PUBLISH c hi"), Reply::Int(1));
    let message = b"*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n";
    let mut heard = vec![0; message.len()];
    ours.read_exact(&mut heard).await.unwrap();
    assert_eq!(heard, message);
    drop(ours);
    while played.run("PUBLISH c hi") != Reply::Int(0) {
        tokio::task::yield_now().await;
    }
}

/// What a replica has is what its primary had a moment ago; a promoted one ends its keys by itself.
#[tokio::test(start_paused = true)]
async fn a_replica_follows_its_primary_and_ends_keys_once_it_is_promoted() {
    let (primary, replica) = (Played::new(), Played::new());
    replica.redis.replicate("primary", 6379);
    let (near, far) = duplex(4096);
    let serving = tokio::spawn(primary.redis.serve(far));
    let redis = replica.redis.clone();
    let following = tokio::spawn(async move { redis.follow(near).await });
    replica.redis.synced().await;
    primary.run("SET gone 1");
    primary.run("FLUSHDB");
    primary.run("SET lock a PX 100");
    let redis = replica.redis.clone();
    let expiring = tokio::spawn(async move { redis.expire_actively().await });
    let has = async |key: &str, wanted: Reply| {
        let asked = format!("EXISTS {key}");
        let seen = async {
            while replica.run(&asked) != wanted {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let seen = tokio::time::timeout(Duration::from_secs(10), seen).await;
        assert!(seen.is_ok(), "{asked} is not {wanted:?}");
    };
    has("lock", Reply::Int(1)).await;
    has("gone", Reply::Int(0)).await;

    let (send, mut ended) = tokio::sync::mpsc::unbounded_channel();
    replica.redis.watch(move |changes, _| {
        for change in changes {
            let _ = send.send(change.event.to_string());
        }
    });
    replica.run("REPLICAOF NO ONE");
    replica.pass(101);
    let event = tokio::time::timeout(Duration::from_secs(10), ended.recv()).await;
    assert_eq!(
        event.expect("the key ends by itself").as_deref(),
        Some("expired")
    );
    following.await.unwrap().unwrap();
    expiring.abort();
    serving.abort();
}
