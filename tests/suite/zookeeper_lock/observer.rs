//! What an observer at a ZooKeeper reports.

use super::kit::*;
use crate::support::{Observer, Wire, docker_shared};
use fencepost::model::LockEventKind::{Expired, Granted, Left, Queued, Released};
use fencepost::services::Backend;
use fencing_lock::ReleaseOutcome;

#[tokio::test]
async fn a_lock_is_seen_from_its_grant_to_its_end() {
    let _turn = docker_shared();
    // It watches through another member than the holder's.
    let observer = Observer::start(Backend::Zookeeper, &addresses()[2], "3.8.").await;
    let key = unique_key();
    let wire = Wire::to(addresses()[0].clone()).await;
    let (brief, _) = locks_at(std::slice::from_ref(&wire.address), 2 * SECOND);
    let (locks, _) = locks(LONG);
    let first = locks.acquire(&key, soon()).await.unwrap();
    observer.has_told(&key, 1).await;
    let gone = waiter(&locks, &key);
    observer.has_told(&key, 2).await;
    gone.abort();
    observer.has_told(&key, 3).await;
    let owner = first.owner().to_owned();
    let token = first.fence().0;
    assert_eq!(first.release().await, ReleaseOutcome::Released);
    let second = brief.acquire(&key, soon()).await.unwrap();
    observer.has_told(&key, 5).await;
    // Its session expires.
    wire.hold();
    wire.refuse(true);
    let third = locks.acquire(&key, soon()).await.unwrap();
    observer.has_told(&key, 8).await;
    let rows = observer.stop(&key).await;
    let kinds: Vec<_> = rows.iter().map(|row| row.kind).collect();
    let expected = [
        Granted, Queued, Left, Released, Granted, Queued, Expired, Granted,
    ];
    assert_eq!(kinds, expected);
    let of = |row: usize| {
        let row = &rows[row];
        (row.owner.as_deref().unwrap(), row.token.unwrap().0)
    };
    assert_eq!([of(0), of(3)], [(owner.as_str(), token); 2]);
    assert_eq!([of(4), of(6)], [(second.owner(), second.fence().0); 2]);
    assert_eq!([of(5), of(7)], [(third.owner(), third.fence().0); 2]);
}
