use crate::etcd_lock::kit::*;
use crate::support::docker_shared;
use fencing_lock::ReleaseOutcome;
use fencing_lock::{EtcdBackend, EtcdSettings, LockClient, Mutant};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn one_who_enters_without_the_lock_stands_second_in_the_line() {
    let _turn = docker_shared();
    let (etcd, key) = (etcd().await, unique_key());
    let first = client(None).acquire(&key, soon()).await.unwrap();
    // Long enough for a line to form, and too short for the holder to go away.
    let deadline = || Instant::now() + Duration::from_secs(1);
    assert!(client(None).acquire(&key, deadline()).await.is_err());
    let mutant = client(Some(Mutant::EnterWithoutLock));
    let second = mutant.acquire(&key, soon()).await.unwrap();
    assert!(!first.is_lost() && !second.is_lost());
    let line = line(&etcd, &key).await;
    let tokens: Vec<u64> = line.iter().map(|kv| kv.create_revision() as u64).collect();
    assert_eq!(tokens, [first.fence().0, second.fence().0]);
    assert_eq!(first.release().await, ReleaseOutcome::Released);
}

/// As another process would have one.
fn client(mutant: Option<Mutant>) -> LockClient {
    let settings = EtcdSettings {
        mutant,
        ..EtcdSettings::default()
    };
    let backend = EtcdBackend::new(&members(), settings).unwrap();
    locks_of(Arc::new(backend), LONG).0
}
