//! What tokens rest on: a column, a sequence and a row, that are on disk before they are answered.

use super::kit::*;
use crate::support::{docker_shared, own_postgres, tokens_only_grow};
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_tokens_only_grow_while_the_server_is_restarted() {
    let _turn = docker_shared();
    for kind in KINDS {
        let server = Arc::new(kind.own_server());
        let clients = (0..3).map(|_| kind.locks_at(&server.address, 2 * SECOND).0);
        let restart = |_| -> Box<dyn FnOnce() + Send> {
            let server = server.clone();
            Box::new(move || {
                server.stop();
                server.start();
            })
        };
        tokens_only_grow(clients.collect(), (0..2).map(restart).collect()).await;
    }
}

#[tokio::test]
async fn a_lease_outlives_a_crash_of_its_server() {
    let _turn = docker_shared();
    let server = own_postgres();
    let (locks, _) = Kind::Lease.locks_at(&server.address, LONG);
    let key = unique_key();
    let lease = locks.acquire(&key, soon()).await.unwrap();
    server.stop();
    server.start();
    let (others, _) = Kind::Lease.locks_at(&server.address, LONG);
    assert!(others.try_acquire(&key).await.unwrap().is_none());
    let postgres = connection_to(&server.address).await;
    let held = holder(&postgres, &key).await;
    assert_eq!(held.as_deref(), Some(lease.owner()));
    // The connection that broke is opened again.
    lease.release().await;
    until_free(Kind::Lease, &server.address, &key).await;
    assert!(token(&postgres, &key).await > Some(1));
}
