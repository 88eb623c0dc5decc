//! Each defect of the resource, beside a resource that is sound: the same steps
//! keep a promise there and break it here.

use super::super::Mutant;
use super::durability::WriteToSlowDisk;
use super::*;
use crate::model::RowValue;
use WriteAnswer::{Accepted, Rejected};
use tokio::time::timeout;

async fn start(mutant: Option<Mutant>, dir: &Path) -> Server {
    let mut config = Config::new(Fence::On, dir);
    config.mutant = mutant;
    Server::configured(config).await
}

#[tokio::test]
async fn one_ignores_tokens() {
    for mutant in [None, Some(Mutant::IgnoreToken)] {
        let dir = tempfile::tempdir().unwrap();
        let server = start(mutant, dir.path()).await;
        assert_eq!(server.put(2, 0, "new").await, Accepted { position: 1 });
        let stale = server.put(1, 0, "old").await;
        assert_eq!(stale == Accepted { position: 2 }, mutant.is_some());
        let row = server.client.log().await.unwrap().remove(1);
        assert_eq!(row.seen, Some(FencingToken(2)), "the judge can see it");
        server.stop().await;
    }
}

#[tokio::test]
async fn one_accepts_equal_tokens() {
    for mutant in [None, Some(Mutant::AcceptEqual)] {
        let dir = tempfile::tempdir().unwrap();
        let server = start(mutant, dir.path()).await;
        assert_eq!(server.put(2, 0, "a").await, Accepted { position: 1 });
        let equal = server.put(2, 0, "b").await;
        assert_eq!(equal == Accepted { position: 2 }, mutant.is_some());
        assert!(matches!(server.put(1, 0, "c").await, Rejected { .. }));
        server.stop().await;
    }
}

#[tokio::test]
async fn one_checks_after_applying() {
    for (mutant, stands) in [(None, "new"), (Some(Mutant::ApplyRefused), "old")] {
        let dir = tempfile::tempdir().unwrap();
        let server = start(mutant, dir.path()).await;
        server.put(2, 0, "new").await;
        assert!(matches!(server.put(1, 0, "old").await, Rejected { .. }));
        let stored = server.value().await.unwrap();
        assert_eq!(stored.value, RowValue::Text(stands.into()));
        server.stop().await;
    }
}

#[tokio::test]
async fn one_forgets_at_restart() {
    for mutant in [None, Some(Mutant::ForgetMaxFence)] {
        let dir = tempfile::tempdir().unwrap();
        let server = start(mutant, dir.path()).await;
        server.put(2, 0, "new").await;
        assert!(matches!(server.put(1, 0, "old").await, Rejected { .. }));
        server.stop().await;
        let server = start(mutant, dir.path()).await;
        let stale = server.put(1, 0, "old").await;
        assert_eq!(stale == Accepted { position: 3 }, mutant.is_some());
        server.stop().await;
    }
}

/// That a sound one does not is in `durability`.
#[tokio::test]
async fn one_answers_before_the_sync() {
    let mut state = State::new(Fence::On);
    state.misbehave(Some(Mutant::AnswerBeforeSync));
    let write = WriteToSlowDisk::begin(state).await;
    let answer = timeout(Duration::from_secs(5), write.answer).await;
    assert_eq!(answer.unwrap().unwrap(), Accepted { position: 1 });
    write.disk_goes_on.send(()).expect("a disk that waits");
}
