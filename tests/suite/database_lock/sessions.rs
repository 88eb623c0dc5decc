//! Locks end with their session, and their holder hears of it.

use super::kit::*;
use crate::support::{Wire, docker_shared};
use fencing_lock::{LockProblem, LostReason, ReleaseOutcome};
use futures_util::future::join_all;
use tokio::time::{Instant, timeout};

/// Ends the sessions that hold an advisory lock and were started by this test's clients.
const END_THE_HOLDER: &str = "SELECT pg_terminate_backend(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND pid <> pg_backend_pid()
    AND ((classid::bigint << 32) | objid::bigint) = $1";

#[tokio::test]
async fn a_holder_hears_at_once_that_its_session_was_ended() {
    let _turn = docker_shared();
    let ((locks, _), (others, _)) = (Kind::Advisory.locks(LONG), Kind::Advisory.locks(LONG));
    // The number of this key is known: no other test uses it.
    let key = "foobar";
    let number = 0x8594_4171_f739_67e8_u64.cast_signed();
    let lease = locks.acquire(key, soon()).await.unwrap();
    assert!(others.try_acquire(key).await.unwrap().is_none());
    let ended = connection()
        .await
        .query_typed(
            END_THE_HOLDER,
            &[(&number, tokio_postgres::types::Type::INT8)],
        )
        .await
        .unwrap();
    assert_eq!(ended.len(), 1, "one session holds it");
    let told = timeout(5 * SECOND, lease.lost()).await;
    assert_eq!(told, Ok(LostReason::SessionOver));
    let next = others.acquire(key, soon()).await.unwrap();
    assert!(next.fence() > lease.fence());
    assert_eq!(lease.release().await, ReleaseOutcome::Unknown);
    assert_eq!(next.release().await, ReleaseOutcome::Released);
}

#[tokio::test]
async fn sessions_are_used_again_and_do_not_add_up() {
    let _turn = docker_shared();
    for kind in OF_SESSIONS {
        let (locks, metrics) = kind.locks(LONG);
        for _ in 0..50 {
            let lease = locks.acquire(&unique_key(), soon()).await.unwrap();
            assert_eq!(lease.release().await, ReleaseOutcome::Released);
        }
        assert_eq!(metrics.requests.get(), 100, "a try and a release each");
    }
}

/// As a pooler does that gives one session to two clients.
#[tokio::test]
async fn a_session_that_serves_somebody_else_is_refused() {
    let _turn = docker_shared();
    let address = Kind::Advisory.database().await;
    let (_, name) = address.rsplit_once('/').expect("its name");
    let mark = format!("ALTER DATABASE {name} SET fencing_lock.owner = 'another'");
    connection().await.batch_execute(&mark).await.unwrap();
    let (locks, _) = Kind::Advisory.locks_at(&address, LONG);
    let error = locks.try_acquire("k").await.unwrap_err();
    let LockProblem::Refused(words) = &error.problem else {
        panic!("{error}");
    };
    assert!(words.contains("pooler"), "{words}");
}

/// After a cut without a word, the sessions that waited for their next lock are all dead.
#[tokio::test]
async fn idle_sessions_that_are_dead_cost_one_time_limit_and_not_one_each() {
    let _turn = docker_shared();
    for kind in OF_SESSIONS {
        let wire = Wire::to(kind.address()).await;
        let (locks, metrics) = kind.locks_at(&wire.address, LONG);
        let keys: Vec<String> = (0..5).map(|_| unique_key()).collect();
        let leases = keys.iter().map(|key| locks.acquire(key, soon()));
        for lease in join_all(leases).await {
            assert_eq!(lease.unwrap().release().await, ReleaseOutcome::Released);
        }
        wire.hold();
        let before = metrics.requests.get();
        let lease = locks
            .acquire(&keys[0], Instant::now() + LONG)
            .await
            .unwrap();
        let asked = metrics.requests.get() - before;
        assert!(
            asked <= 2,
            "{kind:?}: one that was dead, one that is new: {asked}"
        );
        assert_eq!(lease.release().await, ReleaseOutcome::Released);
        wire.cut();
    }
}
