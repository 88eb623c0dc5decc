//! Connections that break, and servers that are silent, gone, without a leader, or refuse.

use super::kit::*;
use crate::support::{Wire, consul_address, docker_shared, own_consul, stranger};
use fencing_lock::{
    ConsulSettings, LockError, LockProblem, LostReason, ReleaseOutcome, keep_renewed,
};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn a_holder_behind_a_dead_connection_is_told_by_its_deadline() {
    let _turn = docker_shared();
    let wire = Wire::to(consul_address()).await;
    let ttl = 3 * SECOND;
    let (locks, _) = locks_at(&wire.address, ttl);
    let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
    wire.hold();
    wire.refuse(true);
    let reason = timeout(LONG, keep_renewed(&lease, || {})).await.unwrap();
    let late = lease.acquired_at().elapsed().abs_diff(ttl);
    assert_eq!(reason, LostReason::Deadline);
    assert!(late < 2 * SECOND, "{late:?}");
    assert!(lease.is_lost());
}

#[tokio::test]
async fn a_connection_that_broke_is_opened_again() {
    let _turn = docker_shared();
    let wire = Wire::to(consul_address()).await;
    let ((locks, _), key) = (locks_at(&wire.address, LONG), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    wire.hold();
    wire.cut();
    wire.until_the_held_ended().await;
    let lease = locks.acquire(&key, soon()).await.unwrap();
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_an_error_by_the_deadline() {
    let error = acquire_from(NOBODY).await;
    let LockProblem::Timeout { last, .. } = &error.problem else {
        panic!("{error}");
    };
    assert!(matches!(last.as_deref(), Some(LockProblem::Unreachable(_))));
    let named = (error.backend, error.node.as_str(), error.key.as_str());
    assert_eq!(named, ("consul", NOBODY, "account-42"));
}

#[tokio::test]
async fn a_server_that_is_no_consul_is_an_error_by_the_deadline() {
    for words in [
        "hello, I am no lock server\r\n\r\n",
        "HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot found",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        "HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n",
    ] {
        let address = stranger(move |mut stream| async move {
            let _request = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(words.as_bytes()).await;
            sleep(LONG).await;
        })
        .await;
        let (locks, _) = locks_at(&address, LONG);
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
    let error = acquire_from(&address).await;
    assert!(matches!(error.problem, LockProblem::Timeout { .. }));
}

/// An acquire with half a second to go, from a server that will not grant it.
async fn acquire_from(address: &str) -> LockError {
    let (locks, _) = locks_at(address, LONG);
    let deadline = Instant::now() + Duration::from_millis(500);
    let error = locks.acquire("account-42", deadline).await.unwrap_err();
    let late = Instant::now().saturating_duration_since(deadline);
    assert!(late < 2 * SECOND, "{late:?} late");
    error
}

#[tokio::test]
async fn a_ttl_that_the_server_does_not_keep_is_an_error_at_once() {
    let _turn = docker_shared();
    let ttl = Duration::from_millis(900);
    let (locks, _) = locks(ttl);
    let waits = locks.acquire("account-42", Instant::now() + LONG);
    let error = timeout(10 * SECOND, waits).await.expect("at once");
    let error = error.unwrap_err();
    let LockProblem::TtlNotKept { ttl: refused, said } = &error.problem else {
        panic!("{error}");
    };
    assert_eq!(*refused, ttl);
    assert!(said.contains("session_ttl_min"), "{said}");
}

#[tokio::test]
async fn a_server_that_wants_a_token_or_has_no_leader_refuses_in_words() {
    let _turn = docker_shared();
    let acl = r#"-hcl=acl { enabled=true default_policy="deny" tokens { master="s3cret" } }"#;
    let denying = own_consul(&[acl]);
    let settings = |acl_token: Option<&str>| ConsulSettings {
        // A server without a leader waits for one for 7 s.
        response_timeout: 15 * SECOND,
        acl_token: acl_token.map(str::to_owned),
        ..ConsulSettings::default()
    };
    let locks = |acl_token| locks_with(&denying.address, LONG, settings(acl_token)).0;
    let refused = async |locks: &fencing_lock::LockClient, words: &str| {
        let error = locks.try_acquire("account-42").await.unwrap_err();
        assert!(matches!(error.problem, LockProblem::Refused(_)), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    };
    refused(&locks(None), "key:write").await;
    refused(&locks(Some("nobody's")), "ACL not found").await;
    let granted = locks(Some("s3cret")).try_acquire("account-42").await;
    let lease = granted.unwrap().expect("free");
    assert_eq!(lease.release().await, ReleaseOutcome::Released);
    assert!(!format!("{:?}", settings(Some("s3cret"))).contains("s3cret"));

    let leaderless = own_consul_without_a_leader();
    let (locks, _) = locks_with(&leaderless.address, LONG, settings(None));
    refused(&locks, "majority").await;
}

fn own_consul_without_a_leader() -> crate::support::Server {
    own_consul(&["-bootstrap-expect=2"])
}
