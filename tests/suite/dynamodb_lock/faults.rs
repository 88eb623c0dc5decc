//! Connections that break, and servers that are silent, gone or no lock servers.

use super::kit::*;
use crate::support::{Wire, docker_shared, dynamodb_address, stranger};
use fencing_lock::{LockError, LockProblem, LostReason, keep_renewed};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn a_holder_behind_a_dead_connection_is_told_by_its_deadline() {
    let _turn = docker_shared();
    let wire = Wire::to(dynamodb_address()).await;
    let ttl = 3 * SECOND;
    let (locks, _) = locks_at(&wire.address, settings(), ttl);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    wire.hold_next(100);
    let reason = timeout(LONG, keep_renewed(&lease, || {})).await.unwrap();
    let late = lease.acquired_at().elapsed().abs_diff(ttl);
    assert_eq!(reason, LostReason::Deadline);
    assert!(late < 2 * SECOND, "{late:?}");
    assert!(lease.is_lost());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_by_the_deadline() {
    let error = acquire_from(NOBODY).await;
    let LockProblem::Timeout { last, .. } = &error.problem else {
        panic!("{error}");
    };
    assert!(matches!(last.as_deref(), Some(LockProblem::Unreachable(_))));
    let named = (error.backend, error.node.as_str(), error.key.as_str());
    assert_eq!(named, ("dynamodb", NOBODY, "account-42"));
}

#[tokio::test]
async fn a_server_that_talks_nonsense_is_an_error_by_the_deadline() {
    for nonsense in [
        &b"hello, I am no lock server\r\n\r\n"[..],
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello",
    ] {
        let address = stranger(move |mut stream| async move {
            let _request = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(nonsense).await;
            sleep(LONG).await;
        })
        .await;
        let error = acquire_from(&address).await;
        assert!(matches!(error.problem, LockProblem::Timeout { .. }));
        let (locks, _) = locks_at(&address, settings(), LONG);
        let error = timeout(10 * SECOND, locks.try_acquire("k")).await.unwrap();
        let problem = error.unwrap_err().problem;
        assert!(matches!(problem, LockProblem::BadAnswer(_)), "{problem:?}");
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_cut_off() {
    let address = stranger(|mut stream| async move {
        let begin = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n";
        let _request = stream.read(&mut [0; 4096]).await;
        let _ = stream.write_all(begin).await;
        while stream.write_all(&[b'x'; 65_536]).await.is_ok() {}
    })
    .await;
    let (locks, _) = locks_at(&address, settings(), LONG);
    let error = timeout(LONG, locks.try_acquire("k")).await.unwrap();
    let problem = error.unwrap_err().problem;
    assert!(matches!(problem, LockProblem::BadAnswer(_)), "{problem:?}");
}

#[tokio::test]
async fn a_server_that_never_answers_is_an_error_by_the_deadline() {
    let address = stranger(|stream| async move {
        sleep(LONG).await;
        drop(stream);
    })
    .await;
    let error = acquire_from(&address).await;
    assert!(matches!(error.problem, LockProblem::Timeout { .. }));
}

/// An acquire with half a second to go, from a server that will not grant it.
async fn acquire_from(address: &str) -> LockError {
    let (locks, _) = locks_at(address, settings(), LONG);
    let deadline = Instant::now() + Duration::from_millis(500);
    let error = locks.acquire("account-42", deadline).await.unwrap_err();
    let late = Instant::now().saturating_duration_since(deadline);
    assert!(late < 2 * SECOND, "{late:?} late");
    error
}
