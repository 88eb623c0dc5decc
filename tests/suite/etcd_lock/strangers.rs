//! Servers that are not there, never answer, or are no etcd at all.

use super::kit::*;
use crate::support::stranger;
use fencing_lock::{
    EtcdBackend, EtcdLockApiBackend, EtcdSettings, LockBackend, LockError, LockProblem,
};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, sleep, timeout};

#[tokio::test]
async fn servers_that_are_not_there_are_an_error_by_the_deadline() {
    for error in acquire_from(&[NOBODY, NOBODY, NOBODY]).await {
        let LockProblem::Timeout { last, .. } = &error.problem else {
            panic!("{error}");
        };
        let last = last.as_deref();
        assert!(matches!(last, Some(LockProblem::Unreachable(_))), "{error}");
        assert_eq!(error.node, [NOBODY; 3].join(","));
        assert!(error.to_string().contains("account-42"), "{error}");
    }
}

#[tokio::test]
async fn servers_that_never_answer_are_an_error_by_the_deadline() {
    let address = stranger(|stream| async move {
        sleep(LONG).await;
        drop(stream);
    })
    .await;
    for error in acquire_from(&[&address]).await {
        let is_late = matches!(error.problem, LockProblem::Timeout { .. });
        assert!(is_late, "{error}");
    }
    let (locks, _) = locks_of(at(&[&address])[0].clone(), LONG);
    let tried = timeout(5 * SECOND, locks.try_acquire("k")).await.unwrap();
    let problem = tried.unwrap_err().problem;
    assert!(matches!(problem, LockProblem::NoAnswer(_)), "{problem:?}");
}

#[tokio::test]
async fn servers_that_talk_nonsense_are_an_error_by_the_deadline() {
    let address = stranger(|mut stream| async move {
        let mut bytes = [0; 1_024];
        while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {
            let nonsense = b"HTTP/1.1 200 OK\r\n\r\nhello, I am no lock server\r\n";
            if stream.write_all(nonsense).await.is_err() {
                return;
            }
        }
    })
    .await;
    for error in acquire_from(&[&address]).await {
        let is_late = matches!(error.problem, LockProblem::Timeout { last: Some(_), .. });
        assert!(is_late, "{error}");
    }
    for backend in at(&[&address]) {
        let (locks, _) = locks_of(backend, LONG);
        let tried = timeout(5 * SECOND, locks.try_acquire("k")).await.unwrap();
        let problem = tried.unwrap_err().problem;
        assert!(matches!(problem, LockProblem::BadAnswer(_)), "{problem:?}");
    }
}

#[test]
fn addresses_that_are_none_are_refused_and_named() {
    let new = |members: &[&str]| {
        let members: Vec<String> = members.iter().map(|one| (*one).to_owned()).collect();
        EtcdBackend::new(&members, EtcdSettings::default()).err()
    };
    let error = new(&["127.0.0.1:2379", "not an address"]).expect("refused");
    assert!(error.to_string().contains("not an address"), "{error}");
    assert!(matches!(error.problem, LockProblem::BadAddress { .. }));
    let error = new(&[]).expect("refused");
    assert!(matches!(error.problem, LockProblem::BadServers(_)));
    assert!(new(&["127.0.0.1:2379"]).is_none());
}

fn at(members: &[&str]) -> [Arc<dyn LockBackend>; 2] {
    let members: Vec<String> = members.iter().map(|one| (*one).to_owned()).collect();
    let settings = EtcdSettings::default();
    [
        Arc::new(EtcdBackend::new(&members, settings).unwrap()),
        Arc::new(EtcdLockApiBackend::new(&members, settings).unwrap()),
    ]
}

/// Both backends with two seconds to go, from servers that will not grant it.
async fn acquire_from(members: &[&str]) -> Vec<LockError> {
    let mut errors = Vec::new();
    for backend in at(members) {
        let (locks, _) = locks_of(backend, LONG);
        let deadline = Instant::now() + 2 * SECOND;
        let error = locks.acquire("account-42", deadline).await.unwrap_err();
        let late = Instant::now().saturating_duration_since(deadline);
        assert!(late < 2 * SECOND, "{late:?} late");
        errors.push(error);
    }
    errors
}
