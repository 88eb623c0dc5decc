//! A leader that was deposed and does not know it. It still answers keep-alives, for a lease
//! that expires at the next leader.

use super::kit::*;
use super::relays::{Relays, Treatment};
use crate::support::docker_shared;
use fencing_lock::LockBackend;
use futures_util::future::join_all;
use std::sync::Arc;
use tokio::time::{Instant, sleep, timeout};

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_does_not_believe_the_keep_alives_of_a_deposed_leader() {
    let _turn = docker_shared();
    let leader = [members().swap_remove(leader().await)];
    let mut cases = Vec::new();
    // Its disk may hang, so that it answers nothing else; or it learns of the next leader after
    // each keep-alive, and passes on what it is asked then.
    for others in [Treatment::HoldBack, Treatment::PassOn] {
        for backend_at in [backend_at, api_backend_at] {
            let relays = Relays::to(&leader).await;
            cases.push(loses_its_lock(
                backend_at(&relays.addresses),
                relays,
                others,
            ));
        }
    }
    join_all(cases).await;
}

async fn loses_its_lock(backend: Arc<dyn LockBackend>, relays: Relays, others: Treatment) {
    let (etcd, key) = (etcd().await, unique_key());
    let name = backend.name();
    let (mine, _) = locks_of(backend, 4 * SECOND);
    let lease = mine.acquire(&key, soon()).await.unwrap();
    let next = waiter(&locks(LONG).0, &key);
    until_length(&etcd, &key, 2).await;
    relays.treat(move |_, method| match method {
        "LeaseKeepAlive" => Treatment::Prolong,
        _ => others,
    });
    let next = next.await.unwrap();
    let tokens = (lease.fence(), next.fence());
    assert!(lease.is_lost(), "{name}: two holders, {tokens:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_holder_keeps_its_lock_by_the_other_members() {
    let _turn = docker_shared();
    let (leader, relays) = (leader().await, Relays::to_all().await);
    let (mine, _) = locks_of(backend_at(&relays.addresses), 10 * SECOND);
    let lease = mine.acquire(&unique_key(), soon()).await.unwrap();
    relays.treat(move |member, method| match method {
        _ if member != leader => Treatment::PassOn,
        "LeaseKeepAlive" => Treatment::Prolong,
        // A leader that does not know of the next one says that it leads.
        "Status" => Treatment::PassOn,
        _ => Treatment::HoldBack,
    });
    // It is confirmed when it would have expired without a leader that counts.
    let long_after = Instant::now() + 2 * lease.ttl() + lease.ttl() / 2;
    let confirmed = async {
        while lease.deadline() < long_after {
            sleep(SECOND / 50).await;
        }
    };
    timeout(LONG, confirmed).await.expect("it goes on");
    let others = locks(LONG).0.try_acquire(lease.key()).await.unwrap();
    assert!(others.is_none() && !lease.is_lost());
}
