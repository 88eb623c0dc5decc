//! The promises of the lock on servers in memory, and where a naive majority of them breaks.

#![cfg(all(feature = "memory", feature = "redlock", feature = "unsafe-modes"))]

use async_trait::async_trait;
use fencing_lock::{
    ByteStream, Env, LockBackend, LockClient, LockMetrics, LockProblem, LockSettings, LostReason,
    MemoryBackend, NaiveMajority, ReleaseOutcome, RenewError, World, keep_renewed,
};
use futures_util::future::BoxFuture;
use memory_lock_server::LockServer;
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::io::duplex;
use tokio::time::{Instant, sleep, timeout};

const TTL: Duration = Duration::from_secs(2);
const KEY: &str = "account 42";

/// Three servers, called 1 to 3.
#[derive(Clone)]
struct Servers([LockServer; 3]);

impl Servers {
    fn new() -> Servers {
        let servers = Servers([(); 3].map(|()| LockServer::default()));
        for (number, server) in (1..).zip(&servers.0) {
            servers.start(number);
            let server = server.clone();
            tokio::spawn(async move { match server.expire_actively().await {} });
        }
        servers
    }

    /// Starts one of them, with nothing of what it knew.
    fn start(&self, number: usize) {
        let from = Instant::now();
        self.0[number - 1].start(move || from.elapsed());
    }

    /// A process that reaches these of the servers.
    fn process(&self, reaches: &'static [usize]) -> Env {
        let random = Mutex::new(fastrand::Rng::with_seed(fastrand::u64(..)));
        let servers = self.clone();
        Env::of(Arc::new(Process {
            servers,
            reaches,
            random,
        }))
    }

    fn one(&self) -> LockClient {
        let backend = MemoryBackend::with_env("1:7001", self.process(&[1]));
        client(backend.unwrap())
    }

    fn majority(&self, reaches: &'static [usize]) -> LockClient {
        let env = self.process(reaches);
        let member = |number: usize| -> Box<dyn LockBackend> {
            let member = MemoryBackend::with_env(&format!("{number}:7001"), env.clone());
            Box::new(member.unwrap())
        };
        let members = [1, 2, 3].map(member).into();
        client(NaiveMajority::new("memory-majority", members, env.clone()))
    }
}

struct Process {
    servers: Servers,
    reaches: &'static [usize],
    random: Mutex<fastrand::Rng>,
}

#[async_trait]
impl World for Process {
    fn wall_clock(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn random(&self) -> u64 {
        self.random.lock().u64(..)
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        tokio::spawn(task);
    }

    async fn dial(&self, host: &str, _port: u16) -> io::Result<Box<dyn ByteStream>> {
        let number: usize = host.parse().map_err(io::Error::other)?;
        if !self.reaches.contains(&number) {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (near, far) = duplex(1024);
        let server = self.servers.0[number - 1].clone();
        tokio::spawn(async move { server.serve(far).await });
        Ok(Box::new(near))
    }
}

fn client(backend: impl LockBackend + 'static) -> LockClient {
    let settings = LockSettings { ttl: TTL, seed: 1 };
    LockClient::new(Arc::new(backend), settings, LockMetrics::default()).unwrap()
}

fn soon() -> Instant {
    Instant::now() + 10 * TTL
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_at_its_deadline_and_one_that_is_dropped_leaves_no_place() {
    let servers = Servers::new();
    let held = servers.one().acquire(KEY, soon()).await.unwrap();
    let renewing = async {
        keep_renewed(&held, || {}).await;
    };
    let others = async {
        let deadline = Instant::now() + 3 * TTL;
        let error = servers.one().acquire(KEY, deadline).await.unwrap_err();
        let last = matches!(error.problem, LockProblem::Timeout { last: None, .. });
        assert!(last && Instant::now() == deadline, "{error}");
        let locks = servers.one();
        let dropped = timeout(TTL, locks.acquire(KEY, soon())).await;
        assert!(dropped.is_err(), "somebody else holds it");
    };
    tokio::select! {
        () = renewing => panic!("not lost"),
        () = others => {}
    }
    assert_eq!(held.release().await, ReleaseOutcome::Released);
    let next = servers.one().try_acquire(KEY).await.unwrap();
    assert_eq!(next.expect("nobody stands in the line").fence().0, 2);
}

#[tokio::test(start_paused = true)]
async fn a_holder_learns_that_its_lock_is_lost() {
    let servers = Servers::new();
    let lost_with = |error| match error {
        Err(RenewError::Lost(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let lease = servers.one().acquire(KEY, soon()).await.unwrap();
    servers.start(1);
    assert_eq!(
        lost_with(lease.renew().await.map(|_| ())),
        LostReason::Expired
    );
    let lease = servers.one().acquire(KEY, soon()).await.unwrap();
    servers.start(1);
    let other = servers.one().acquire(KEY, soon()).await.unwrap();
    assert_eq!(
        lost_with(lease.renew().await.map(|_| ())),
        LostReason::Superseded
    );
    // It began to count again.
    assert_eq!((lease.fence().0, other.fence().0), (1, 1));
    sleep(TTL).await;
    assert!(other.is_lost());
    assert_eq!(other.release().await, ReleaseOutcome::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_stopped_while_it_is_handed_the_lock_does_not_believe_in_it() {
    let servers = Servers::new();
    let held = servers.one().acquire(KEY, soon()).await.unwrap();
    let locks = servers.one();
    let mut waiting = Box::pin(locks.acquire(KEY, soon()));
    assert!(timeout(TTL / 4, &mut waiting).await.is_err());
    // Nobody looks at it from here on.
    assert_eq!(held.release().await, ReleaseOutcome::Released);
    let other = servers.one().acquire(KEY, soon()).await.unwrap();
    assert_eq!(other.fence().0, 3, "it was handed over in between");
    assert!(
        timeout(TTL / 4, &mut waiting).await.is_err(),
        "somebody holds it"
    );
    assert_eq!(other.release().await, ReleaseOutcome::Released);
    assert_eq!(waiting.await.unwrap().fence().0, 4);
}

#[tokio::test(start_paused = true)]
async fn the_highest_token_of_a_majority_runs_backwards_without_any_fault() {
    let servers = Servers::new();
    let mut tokens = Vec::new();
    for reaches in [&[1, 2], &[1, 3], &[1, 2], &[1, 3], &[2, 3]] {
        let lease = servers
            .majority(reaches)
            .acquire(KEY, soon())
            .await
            .unwrap();
        tokens.push(lease.fence().0);
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
    assert_eq!(tokens, [1, 2, 3, 4, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_majority_excludes_until_a_member_forgets() {
    let servers = Servers::new();
    for _ in 0..3 {
        let lease = servers
            .majority(&[1, 2])
            .acquire(KEY, soon())
            .await
            .unwrap();
        lease.release().await;
    }
    let held = servers
        .majority(&[1, 2])
        .acquire(KEY, soon())
        .await
        .unwrap();
    let others = servers.majority(&[2, 3]);
    assert!(others.try_acquire(KEY).await.unwrap().is_none());
    assert!(servers.majority(&[3]).try_acquire(KEY).await.is_err());
    assert!(held.renew().await.is_ok());
    servers.start(2);
    let second = others.try_acquire(KEY).await.unwrap().expect("two votes");
    assert!(!held.is_lost() && !second.is_lost(), "two holders");
    assert!(second.fence() < held.fence());
}
