//! A server, or something in front of it, that answers twice, in another order, or with the
//! answer to somebody else.

use super::kit::*;
use super::late::{KINDS, Kind, locks};
use crate::support::{docker_shared, redis_address, stranger};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::Instant;

#[derive(Clone, Copy, Debug)]
enum Mischief {
    Twice,
    Swapped,
    Anothers,
}

/// Each connection is undisturbed until so many answers have come, and again after each mischief.
const ANSWERS_BETWEEN: usize = 9;

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_to_another_request_grants_nothing() {
    let _turn = docker_shared();
    for mischief in [Mischief::Twice, Mischief::Swapped, Mischief::Anothers] {
        for kind in KINDS {
            grants_are_true(kind, mischief).await;
        }
    }
}

/// Everybody who is granted a lock is its holder at the server, everybody is served, and nothing
/// is left in the end.
async fn grants_are_true(kind: Kind, mischief: Mischief) {
    let done: Arc<AtomicUsize> = Arc::default();
    let address = liar(mischief, done.clone()).await;
    let keys: Vec<String> = (0..4).map(|_| unique_key()).collect();
    let mut tasks = JoinSet::new();
    // As if of two processes.
    for locks in [(); 2].map(|()| locks(kind, &address)) {
        for key in &keys {
            let (locks, key) = (locks.clone(), key.clone());
            tasks.spawn(async move {
                for _ in 0..8 {
                    let lease = locks.acquire(&key, Instant::now() + LONG / 2).await;
                    let lease =
                        lease.unwrap_or_else(|error| panic!("{kind:?}, {mischief:?}: {error}"));
                    let holder = holder(&key).await;
                    assert_eq!(
                        holder.as_deref(),
                        Some(lease.owner()),
                        "{kind:?}, {mischief:?}"
                    );
                    // Its answer may be another's as well.
                    lease.release().await;
                }
            });
        }
    }
    tasks.join_all().await;
    let mut redis = redis_connection().await;
    for key in &keys {
        until_nothing_left(&mut redis, key).await;
    }
    let done = done.load(Ordering::SeqCst);
    assert!(
        done > 1,
        "{kind:?}, {mischief:?}: only {done} answers were wrong"
    );
}

/// Passes requests on as they are, and answers with mischief.
async fn liar(mischief: Mischief, done: Arc<AtomicUsize>) -> String {
    let anothers: Arc<Mutex<Vec<u8>>> = Arc::default();
    stranger(move |client| {
        let (done, anothers) = (done.clone(), anothers.clone());
        async move {
            let redis = TcpStream::connect(redis_address()).await.unwrap();
            let (mut from_client, mut to_client) = client.into_split();
            let (from_redis, mut to_redis) = redis.into_split();
            let mut from_redis = BufReader::new(from_redis);
            let answers = async {
                let mut count = 0;
                while let Some(answer) = value(&mut from_redis).await {
                    count += 1;
                    let is_due = count % ANSWERS_BETWEEN == 0 && !answer.starts_with(b">");
                    let told = match mischief {
                        _ if !is_due => answer.clone(),
                        Mischief::Twice => [answer.clone(), answer.clone()].concat(),
                        Mischief::Swapped => {
                            let next = value(&mut from_redis).await.unwrap_or_default();
                            [next, answer.clone()].concat()
                        }
                        Mischief::Anothers => anothers.lock().await.clone(),
                    };
                    done.fetch_add(usize::from(is_due), Ordering::SeqCst);
                    *anothers.lock().await = answer;
                    if to_client.write_all(&told).await.is_err() {
                        return;
                    }
                }
            };
            tokio::select! {
                () = answers => {}
                _ = tokio::io::copy(&mut from_client, &mut to_redis) => {}
            }
        }
    })
    .await
}

/// Reads the next value with all that belongs to it.
async fn value(from: &mut BufReader<OwnedReadHalf>) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut due = 1;
    while due > 0 {
        let begin = bytes.len();
        if from.read_until(b'\n', &mut bytes).await.ok()? == 0 {
            return None;
        }
        due -= 1;
        let number: i64 = str::from_utf8(&bytes[begin + 1..])
            .ok()?
            .trim()
            .parse()
            .unwrap_or(0);
        match (bytes[begin], usize::try_from(number)) {
            (b'$' | b'!' | b'=', Ok(length)) => {
                let text = bytes.len();
                bytes.resize(text + length + 2, 0);
                from.read_exact(&mut bytes[text..]).await.ok()?;
            }
            (b'*' | b'~' | b'>', Ok(values)) => due += values,
            (b'%', Ok(pairs)) => due += 2 * pairs,
            _ => {}
        }
    }
    Some(bytes)
}
