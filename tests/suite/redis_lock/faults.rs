//! The lock when the way to its server is slow, cut, closed or leads nowhere.

use super::kit::*;
use crate::support::{docker_shared, redis_address, stranger};
use fencepost::model::WaitPolicy;
use fencing_lock::ReleaseOutcome;
use fencing_lock::{
    LockClient, LockError, LockMetrics, LockProblem, LockSettings, LostReason, keep_renewed,
};
use redis::AsyncCommands;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_try_that_is_cut_off_while_its_answer_is_under_way_is_undone() {
    let _turn = docker_shared();
    let settings = LockSettings { ttl: LONG, seed: 1 };
    let backend = backend(&slow_proxy(Duration::from_millis(500)).await);
    let locks = LockClient::new(backend, settings, LockMetrics::default()).unwrap();
    // The connection stands and the scripts are loaded before it counts.
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    lease.release().await;

    let key = unique_key();
    let mut redis = redis_connection().await;
    let granted = async {
        let fence = format!("fence:{{{key}}}");
        while redis.get::<_, Option<u64>>(&fence).await.unwrap() != Some(1) {
            sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        answer = locks.try_acquire(&key) => panic!("it came too early for this test: {answer:?}"),
        granted = timeout(LONG, granted) => granted.expect("the server grants it"),
    }
    until_free(&key).await;
}

#[tokio::test]
async fn a_holder_behind_a_dead_connection_is_told_by_its_deadline() {
    // Alone, because it looks at milliseconds.
    let _turn = docker_shared();
    let cut = CancellationToken::new();
    let address = proxy(cut.clone()).await;
    let ttl = 3 * SECOND;
    let settings = LockSettings { ttl, seed: 1 };
    let locks = LockClient::new(backend(&address), settings, LockMetrics::default()).unwrap();
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    cut.cancel();
    let reason = timeout(LONG, keep_renewed(&lease, || {})).await.unwrap();
    let late = lease.acquired_at().elapsed().abs_diff(ttl);
    assert_eq!(reason, LostReason::Deadline);
    assert!(late < SECOND, "{late:?}");
    assert!(lease.is_lost());
}

#[tokio::test]
async fn a_connection_that_broke_is_opened_again() {
    let _turn = docker_shared();
    let cut = CancellationToken::new();
    let address = closing_proxy(cut.clone()).await;
    let settings = LockSettings { ttl: LONG, seed: 1 };
    let locks = LockClient::new(backend(&address), settings, LockMetrics::default()).unwrap();
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    cut.cancel();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_by_the_deadline() {
    let _turn = docker_shared();
    for wait in WaitPolicy::ALL {
        let error = acquire_from(NOBODY, wait).await;
        let LockProblem::Timeout { last, .. } = &error.problem else {
            panic!("{error}");
        };
        assert!(matches!(last.as_deref(), Some(LockProblem::Unreachable(_))));
        let named = (error.backend, error.node.as_str(), error.key.as_str());
        assert_eq!(named, ("redis", NOBODY, "account-42"));
    }
}

#[tokio::test]
async fn a_server_that_talks_nonsense_is_an_error_by_the_deadline() {
    let _turn = docker_shared();
    let address = stranger(|mut stream| async move {
        // Longer than one line, so that no command is left without its nonsense.
        for _ in 0..1_000 {
            if stream
                .write_all(b"hello, I am no lock server\r\n")
                .await
                .is_err()
            {
                return;
            }
            sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    for wait in WaitPolicy::ALL {
        let error = acquire_from(&address, wait).await;
        assert!(matches!(error.problem, LockProblem::Timeout { .. }));
        let named = (error.backend, error.node.as_str(), error.key.as_str());
        assert_eq!(named, ("redis", address.as_str(), "account-42"));
        let (locks, _) = locks_at(&address, waiting_by(wait), LONG);
        let error = timeout(10 * SECOND, locks.try_acquire("k")).await.unwrap();
        let problem = error.unwrap_err().problem;
        assert!(matches!(problem, LockProblem::BadAnswer(_)), "{problem:?}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_an_error_by_the_deadline() {
    let _turn = docker_shared();
    let address = stranger(|stream| async move {
        sleep(LONG).await;
        drop(stream);
    })
    .await;
    for wait in WaitPolicy::ALL {
        let error = acquire_from(&address, wait).await;
        assert!(matches!(error.problem, LockProblem::Timeout { .. }));
    }
}

/// An acquire with half a second to go, from a server that will not grant it.
async fn acquire_from(address: &str, wait: WaitPolicy) -> LockError {
    let (locks, _) = locks_at(address, waiting_by(wait), LONG);
    let started_at = Instant::now();
    let deadline = started_at + Duration::from_millis(500);
    let error = locks.acquire("account-42", deadline).await.unwrap_err();
    let late = Instant::now().saturating_duration_since(deadline);
    assert!(late < 2 * SECOND, "{late:?} late");
    error
}

/// Passes everything on until it is cut; after that the connection stands, and
/// nothing comes through.
async fn proxy(cut: CancellationToken) -> String {
    stranger(move |mut client| {
        let cut = cut.clone();
        async move {
            let mut redis = TcpStream::connect(redis_address()).await.unwrap();
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut redis) => {}
                () = cut.cancelled() => sleep(LONG).await,
            }
        }
    })
    .await
}

/// Passes questions on at once and holds each answer back.
async fn slow_proxy(delay: Duration) -> String {
    stranger(move |mut client| async move {
        let mut redis = TcpStream::connect(redis_address()).await.unwrap();
        let (mut from_client, mut to_client) = client.split();
        let (mut from_redis, mut to_redis) = redis.split();
        let answers = async {
            let mut bytes = [0; 4_096];
            loop {
                let length = from_redis.read(&mut bytes).await?;
                sleep(delay).await;
                to_client.write_all(&bytes[..length]).await?;
                if length == 0 {
                    return std::io::Result::Ok(());
                }
            }
        };
        let questions = tokio::io::copy(&mut from_client, &mut to_redis);
        tokio::select! {
            _ = answers => {}
            _ = questions => {}
        }
    })
    .await
}

/// Closes the connections that stand when it is cut, and takes new ones.
async fn closing_proxy(cut: CancellationToken) -> String {
    stranger(move |mut client| {
        let cut = cut.clone();
        let only_old = !cut.is_cancelled();
        async move {
            let mut redis = TcpStream::connect(redis_address()).await.unwrap();
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut redis) => {}
                () = cut.cancelled(), if only_old => {}
            }
        }
    })
    .await
}
