//! What tokens rest on: the index of a grant in the log of the server.

use super::kit::*;
use crate::support::{docker_shared, own_consul, tokens_only_grow};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tokens_only_grow_while_the_server_is_restarted() {
    let _turn = docker_shared();
    let server = Arc::new(own_consul(&[]));
    let clients = (0..3).map(|_| locks_at(&server.address, 2 * SECOND).0);
    let restart = |_| -> Box<dyn FnOnce() + Send> {
        let server = server.clone();
        Box::new(move || {
            server.stop();
            server.start();
        })
    };
    tokens_only_grow(clients.collect(), (0..2).map(restart).collect()).await;
}

/// The `LockIndex` of a key begins again, so it would be no token.
#[tokio::test]
async fn tokens_grow_although_the_key_was_deleted() {
    let _turn = docker_shared();
    let ((locks, _), consul, key) = (locks(LONG), consul(), unique_key());
    let mut last = 0;
    for _ in 0..3 {
        for grants in 1..=2 {
            let lease = locks.acquire(&key, soon()).await.unwrap();
            assert!(lease.fence().0 > last);
            last = lease.fence().0;
            let entry = consul.entry(&key).await.unwrap();
            assert_eq!(entry["ModifyIndex"], last);
            assert_eq!(entry["LockIndex"], grants);
            lease.release().await;
        }
        consul.delete(&key).await;
    }
}

#[tokio::test]
async fn a_lock_outlives_a_crash_of_its_server() {
    let _turn = docker_shared();
    let server = own_consul(&[]);
    let ((locks, _), key) = (locks_at(&server.address, LONG), unique_key());
    let lease = locks.acquire(&key, soon()).await.unwrap();
    server.stop();
    server.start();
    let (others, _) = locks_at(&server.address, LONG);
    assert!(others.try_acquire(&key).await.unwrap().is_none());
    lease.renew().await.unwrap();
    let holder = consul_at(&server.address).holder(&key).await;
    assert_eq!(holder.as_deref(), Some(lease.owner()));
    let token = lease.fence();
    lease.release().await;
    until_free(&server.address, &key).await;
    let next = others.acquire(&key, soon()).await.unwrap();
    assert!(next.fence() > token);
}
