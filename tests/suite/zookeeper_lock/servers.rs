//! Servers that are gone, come back, or are no lock servers.

use super::kit::*;
use crate::support::{docker_shared, own_zookeeper, stranger, tokens_only_grow};
use fencing_lock::servers::ZOOKEEPER_LOCKS;
use fencing_lock::{LockError, LockProblem, ReleaseOutcome};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, sleep, timeout};
use zookeeper_client::{Acls, CreateMode};

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tokens_only_grow_while_the_server_is_restarted() {
    let _turn = docker_shared();
    let server = Arc::new(own_zookeeper());
    let address = [server.address.clone()];
    let clients = (0..3).map(|_| locks_at(&address, 4 * SECOND).0);
    let restart = |_| -> Box<dyn FnOnce() + Send> {
        let server = server.clone();
        Box::new(move || {
            server.stop();
            server.start();
        })
    };
    tokens_only_grow(clients.collect(), (0..2).map(restart).collect()).await;
}

#[tokio::test]
async fn a_member_that_is_not_there_is_passed_over() {
    let _turn = docker_shared();
    let mut some = vec![NOBODY.to_owned(); 3];
    some.push(addresses()[1].clone());
    let (locks, _) = locks_at(&some, LONG);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_lock_outlives_a_crash_of_all_servers() {
    let _turn = docker_shared();
    let server = own_zookeeper();
    let address = [server.address.clone()];
    let (locks, _) = locks_at(&address, LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    server.stop();
    let (others, _) = locks_at(&address, LONG);
    let deadline = Instant::now() + SECOND;
    let gone = others.acquire(&key, deadline).await.unwrap_err();
    assert!(is_unreachable(&gone), "{gone}");
    server.start();
    let busy = others.acquire(&key, Instant::now() + 3 * SECOND).await;
    let busy = busy.unwrap_err().problem;
    assert!(
        matches!(busy, LockProblem::Timeout { last: None, .. }),
        "{busy}"
    );
    assert!(!lease.is_lost());
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_by_the_deadline() {
    let error = acquire_from(NOBODY).await;
    assert!(is_unreachable(&error), "{error}");
    let named = (error.backend, error.node.as_str(), error.key.as_str());
    assert_eq!(named, ("zookeeper", NOBODY, "account-42"));
}

#[tokio::test]
async fn a_server_that_talks_nonsense_is_an_error_by_the_deadline() {
    let address = stranger(|mut stream| async move {
        let _ = stream.write_all(b"hello, I am no lock server\r\n").await;
        sleep(LONG).await;
    })
    .await;
    let error = acquire_from(&address).await;
    assert!(matches!(error.problem, LockProblem::Timeout { .. }));
    let (locks, _) = locks_at(&[address], LONG);
    let error = timeout(10 * SECOND, locks.try_acquire("k")).await.unwrap();
    let problem = error.unwrap_err().problem;
    assert!(
        matches!(problem, LockProblem::Unreachable(_)),
        "{problem:?}"
    );
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

#[tokio::test]
async fn nodes_of_somebody_else_are_refused_in_words() {
    let _turn = docker_shared();
    let server = own_zookeeper();
    let (locks, _) = locks_at(std::slice::from_ref(&server.address), LONG);
    let refused = async |key: &str, words: &str| {
        let error = locks.try_acquire(key).await.unwrap_err();
        assert!(matches!(error.problem, LockProblem::Refused(_)), "{error}");
        let named = (error.backend, error.node.as_str(), error.key.as_str());
        assert_eq!(named, ("zookeeper", server.address.as_str(), key));
        assert!(error.to_string().contains(words), "{error}");
    };
    let somebody = connection_to(&server.address).await;
    let readable = CreateMode::Persistent.with_acls(Acls::anyone_read());
    let open = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let brief = CreateMode::Ephemeral.with_acls(Acls::anyone_all());
    somebody
        .create("/fencing-lock", b"", &readable)
        .await
        .unwrap();
    refused("account-42", "give world:anyone all rights").await;
    somebody.delete("/fencing-lock", None).await.unwrap();

    for (path, options) in [
        ("/fencing-lock".to_owned(), &open),
        (ZOOKEEPER_LOCKS.to_owned(), &open),
        (format!("{ZOOKEEPER_LOCKS}/brief"), &brief),
        (format!("{ZOOKEEPER_LOCKS}/closed"), &readable),
    ] {
        somebody.create(&path, b"", options).await.unwrap();
    }
    refused("brief", "delete it").await;
    refused("closed", "give world:anyone all rights").await;
    // Whoever waits is told at the deadline, and others are not in the way.
    let waits = locks.acquire("brief", Instant::now() + SECOND).await;
    let LockProblem::Timeout { last, .. } = waits.unwrap_err().problem else {
        panic!("another problem");
    };
    assert!(
        matches!(last.as_deref(), Some(LockProblem::Refused(_))),
        "{last:?}"
    );
    let lease = locks.acquire("account-42", soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

fn is_unreachable(error: &LockError) -> bool {
    let LockProblem::Timeout { last, .. } = &error.problem else {
        return false;
    };
    matches!(last.as_deref(), Some(LockProblem::Unreachable(_)))
}

/// An acquire with half a second to go, from a server that will not grant it.
async fn acquire_from(address: &str) -> LockError {
    let (locks, _) = locks_at(&[address.to_owned()], LONG);
    let deadline = Instant::now() + Duration::from_millis(500);
    let error = locks.acquire("account-42", deadline).await.unwrap_err();
    let late = Instant::now().saturating_duration_since(deadline);
    assert!(late < 2 * SECOND, "{late:?} late");
    error
}
