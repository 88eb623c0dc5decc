//! One server, asked past any client.

use memory_lock_server::{Answer, EventKind, LockServer, longest_wait};
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::time::{Instant, advance};

const TTL: Duration = Duration::from_secs(2);

/// A server whose clock is tokio's.
fn server() -> LockServer {
    let (server, from) = (LockServer::default(), Instant::now());
    server.start(move || from.elapsed());
    let own = server.clone();
    tokio::spawn(async move { match own.expire_actively().await {} });
    server
}

fn granted(token: u64) -> Answer {
    Answer::Granted { token }
}

/// One client on its own connection.
struct Client(BufReader<DuplexStream>);

impl Client {
    fn of(server: &LockServer) -> Client {
        let (near, far) = duplex(1024);
        let server = server.clone();
        tokio::spawn(async move { server.serve(far).await });
        Client(BufReader::new(near))
    }

    async fn send(&mut self, line: &str) {
        self.0
            .write_all(format!("{line}\n").as_bytes())
            .await
            .unwrap();
    }

    async fn hear(&mut self) -> Answer {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().parse().unwrap()
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_granted_renewed_released_and_ends() {
    let server = server();
    assert_eq!(server.ask("acquire a 2000 try k"), granted(1));
    let busy = Answer::Held { left: TTL };
    assert_eq!(server.ask("acquire b 2000 try k"), busy);
    assert_eq!(server.ask("renew b 2000 k"), Answer::Superseded);
    advance(TTL / 2).await;
    assert_eq!(server.ask("renew a 2000 k"), Answer::Renewed);
    assert_eq!(server.ask("release b k"), Answer::Superseded);
    assert_eq!(server.ask("acquire b 2000 try k"), Answer::GivenUp);
    advance(TTL).await;
    assert_eq!(server.ask("renew a 2000 k"), Answer::Expired);
    assert_eq!(server.ask("acquire c 2000 try k"), granted(2));
    assert_eq!(server.ask("release c k"), Answer::Released);
    assert_eq!(server.ask("release c k"), Answer::Expired);
    // One counter for all keys.
    assert_eq!(server.ask("acquire d 2000 try other"), granted(3));
    assert_eq!(server.ask("GET / HTTP/1.0"), Answer::NotUnderstood);
}

#[tokio::test(start_paused = true)]
async fn waiters_are_served_as_they_came_and_the_dead_are_passed_over() {
    let server = server();
    assert_eq!(server.ask("acquire a 2000 try k"), granted(1));
    let mut waiters = ["b", "c", "d"].map(|owner| (owner, Client::of(&server)));
    for (owner, client) in &mut waiters {
        client.send(&format!("acquire {owner} 2000 wait k")).await;
        tokio::task::yield_now().await;
    }
    let [(_, mut b), (_, c), (_, mut d)] = waiters;
    assert_eq!(server.ask("release a k"), Answer::Released);
    assert_eq!(b.hear().await, granted(2));
    drop(c);
    tokio::task::yield_now().await;
    // b does not release it: its lease ends, and c is not there any more.
    let from = Instant::now();
    let heard = loop {
        match d.hear().await {
            Answer::Held { .. } => d.send("acquire d 2000 wait k").await,
            answer => break answer,
        }
    };
    assert_eq!((heard, from.elapsed()), (granted(3), TTL));
}

#[tokio::test(start_paused = true)]
async fn a_waiter_asks_again_in_time_and_keeps_its_place() {
    let server = server();
    assert_eq!(server.ask("acquire a 60000 try k"), granted(1));
    let mut b = Client::of(&server);
    b.send("acquire b 2000 wait k").await;
    let from = Instant::now();
    assert!(matches!(b.hear().await, Answer::Held { .. }));
    assert_eq!(from.elapsed(), longest_wait(TTL));
    let mut c = Client::of(&server);
    c.send("acquire c 2000 wait k").await;
    tokio::task::yield_now().await;
    // Between two of its requests it is handed the lock, which counts from the next one.
    assert_eq!(server.ask("release a k"), Answer::Released);
    advance(TTL / 2).await;
    assert_eq!(server.ask("acquire b 2000 wait k"), granted(2));
    let renewed = Answer::Held { left: TTL };
    assert_eq!(server.ask("acquire e 2000 try k"), renewed);
}

#[tokio::test(start_paused = true)]
async fn a_start_forgets_everything_and_every_change_is_reported() {
    let server = server();
    let seen: Arc<Mutex<Vec<(EventKind, u64)>>> = Arc::default();
    let rows = seen.clone();
    server.watch(move |event| rows.lock().push((event.kind, event.token)));
    assert_eq!(server.ask("remember"), Answer::Yes);
    assert_eq!(server.ask("acquire a 2000 try k"), granted(1));
    assert_eq!(server.ask("acquire a 2000 try k"), granted(1));
    tokio::time::sleep(2 * TTL).await;
    assert_eq!(server.ask("remembers"), Answer::Yes);
    server.start(|| Duration::ZERO);
    assert_eq!(server.ask("remembers"), Answer::No);
    assert_eq!(server.ask("acquire b 2000 try k"), granted(1));
    assert_eq!(server.ask("release b k"), Answer::Released);
    let events = [
        (EventKind::Granted, 1),
        (EventKind::Renewed, 1),
        (EventKind::Expired, 1),
        (EventKind::Granted, 1),
        (EventKind::Released, 1),
    ];
    assert_eq!(*seen.lock(), events);
}
