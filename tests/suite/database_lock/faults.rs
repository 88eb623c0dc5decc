//! Connections that break, and servers that are silent, gone or no lock servers.

use super::kit::*;
use crate::support::{docker_shared, stranger};
use fencing_lock::{LockError, LockProblem, LostReason, ReleaseOutcome, keep_renewed};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_holder_behind_a_dead_connection_is_told_by_its_deadline() {
    let _turn = docker_shared();
    for kind in KINDS {
        let cut = CancellationToken::new();
        let address = proxy(kind, cut.clone(), Cut::Silent).await;
        let ttl = 3 * SECOND;
        let (locks, _) = kind.locks_at(&address, ttl);
        let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
        cut.cancel();
        let reason = timeout(LONG, keep_renewed(&lease, || {})).await.unwrap();
        let late = lease.acquired_at().elapsed().abs_diff(ttl);
        assert_eq!(reason, LostReason::Deadline, "{kind:?}");
        assert!(late < 2 * SECOND, "{kind:?}: {late:?}");
        assert!(lease.is_lost());
    }
}

#[tokio::test]
async fn a_connection_that_broke_is_opened_again() {
    let _turn = docker_shared();
    for kind in KINDS {
        let cut = CancellationToken::new();
        let address = proxy(kind, cut.clone(), Cut::Closed).await;
        let (locks, _) = kind.locks_at(&address, LONG);
        let key = unique_key();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        cut.cancel();
        let lease = locks.acquire(&key, soon()).await.unwrap();
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_by_the_deadline() {
    for kind in KINDS {
        let error = acquire_from(kind, NOBODY).await;
        let LockProblem::Timeout { last, .. } = &error.problem else {
            panic!("{error}");
        };
        assert!(matches!(last.as_deref(), Some(LockProblem::Unreachable(_))));
        let named = (error.backend, error.node.as_str(), error.key.as_str());
        assert_eq!(named, (kind.name(), NOBODY, "account-42"));
    }
}

#[tokio::test]
async fn a_server_that_talks_nonsense_is_an_error_by_the_deadline() {
    let address = stranger(|mut stream| async move {
        let _ = stream.write_all(b"hello, I am no lock server\r\n").await;
        sleep(LONG).await;
    })
    .await;
    for kind in KINDS {
        let error = acquire_from(kind, &address).await;
        assert!(matches!(error.problem, LockProblem::Timeout { .. }));
        let (locks, _) = kind.locks_at(&address, LONG);
        let error = timeout(10 * SECOND, locks.try_acquire("k")).await.unwrap();
        let problem = error.unwrap_err().problem;
        assert!(matches!(problem, LockProblem::BadAnswer(_)), "{problem:?}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_an_error_by_the_deadline() {
    let address = stranger(|stream| async move {
        sleep(LONG).await;
        drop(stream);
    })
    .await;
    for kind in KINDS {
        let error = acquire_from(kind, &address).await;
        assert!(matches!(error.problem, LockProblem::Timeout { .. }));
    }
}

/// An acquire with half a second to go, from a server that will not grant it.
async fn acquire_from(kind: Kind, address: &str) -> LockError {
    let (locks, _) = kind.locks_at(address, LONG);
    let deadline = Instant::now() + Duration::from_millis(500);
    let error = locks.acquire("account-42", deadline).await.unwrap_err();
    let late = Instant::now().saturating_duration_since(deadline);
    assert!(late < 2 * SECOND, "{late:?} late");
    error
}

#[derive(Clone, Copy, PartialEq)]
enum Cut {
    /// The connection stands, and nothing comes through.
    Silent,
    /// The connections that stood are closed, and new ones are made.
    Closed,
}

/// Passes everything on until it is cut.
async fn proxy(kind: Kind, cut: CancellationToken, how: Cut) -> String {
    let server = kind.address();
    stranger(move |mut client| {
        let (cut, server) = (cut.clone(), server.clone());
        let is_old = !cut.is_cancelled();
        async move {
            let mut server = TcpStream::connect(server).await.unwrap();
            tokio::select! {
                _ = tokio::io::copy_bidirectional(&mut client, &mut server) => {}
                () = cut.cancelled(), if is_old || how == Cut::Silent => {
                    if how == Cut::Silent {
                        sleep(LONG).await;
                    }
                }
            }
        }
    })
    .await
}
