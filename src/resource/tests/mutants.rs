//! Each defect of the resource, beside a correct resource: the same steps keep a promise with
//! the correct one and break it with the defect.

use super::super::Mutant;
use super::durability::WriteToSlowDisk;
use super::*;
use crate::model::{RowOutcome, RowValue};
use WriteAnswer::{Accepted, Rejected};
use tokio::time::timeout;

async fn start(mutant: Option<Mutant>, dir: &Path) -> Server {
    let mut config = Config::new(Fence::On, dir);
    config.mutant = mutant;
    Server::configured(config).await
}

async fn fresh(mutant: Option<Mutant>) -> (TempDir, Server) {
    let dir = tempfile::tempdir().unwrap();
    let server = start(mutant, dir.path()).await;
    (dir, server)
}

#[tokio::test]
async fn one_ignores_tokens() {
    for mutant in [None, Some(Mutant::IgnoreToken)] {
        let (_dir, server) = fresh(mutant).await;
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
        let (_dir, server) = fresh(mutant).await;
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
        let (_dir, server) = fresh(mutant).await;
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
        let (dir, server) = fresh(mutant).await;
        server.put(2, 0, "new").await;
        assert!(matches!(server.put(1, 0, "old").await, Rejected { .. }));
        server.stop().await;
        let server = start(mutant, dir.path()).await;
        let stale = server.put(1, 0, "old").await;
        assert_eq!(stale == Accepted { position: 3 }, mutant.is_some());
        server.stop().await;
    }
}

#[tokio::test]
async fn one_loses_a_key() {
    for mutant in [None, Some(Mutant::LoseKey)] {
        let (_dir, server) = fresh(mutant).await;
        server.put(1, 0, "only").await;
        let other = WriteRequest {
            key: "other".into(),
            ..attempt(1, 0, "kept")
        };
        server.client.put(&other).await.unwrap();
        assert!(server.value().await.is_some(), "workers still read it");
        let log = server.client.log().await.unwrap();
        assert_eq!(log.len(), 2, "the log is right");
        assert_eq!(server.value().await.is_none(), mutant.is_some());
        assert!(server.client.get("other").await.unwrap().is_some());
        server.stop().await;
    }
}

#[tokio::test]
async fn one_takes_a_stranger_for_the_first_writer() {
    let by = |owner: &str, body| WriteRequest {
        owner: Some(owner.to_owned()),
        ..attempt(2, 0, body)
    };
    for mutant in [None, Some(Mutant::RepeatForStrangers)] {
        let (_dir, server) = fresh(mutant).await;
        let first = server.client.put(&by("first", "a")).await.unwrap();
        let stranger = server.client.put(&by("stranger", "b")).await.unwrap();
        assert_eq!(stranger == first, mutant.is_some());
        let row = server.client.log().await.unwrap().remove(1);
        let told = (row.outcome, row.owner.as_deref());
        let outcome = match mutant {
            None => RowOutcome::Rejected,
            Some(_) => RowOutcome::Duplicate,
        };
        assert_eq!(told, (outcome, Some("stranger")), "the judge can see it");
        server.stop().await;
    }
}

#[tokio::test]
async fn one_refuses_the_highest_token() {
    for mutant in [None, Some(Mutant::RefuseHighest)] {
        let (_dir, server) = fresh(mutant).await;
        assert_eq!(server.put(1, 0, "a").await, Accepted { position: 1 });
        let refusal = Rejected {
            seen: FencingToken(1),
            got: FencingToken(2),
        };
        let answer = server.put(2, 0, "b").await;
        assert_eq!(answer == refusal, mutant.is_some());
        assert_eq!(server.put(3, 0, "c").await, Accepted { position: 3 });
        server.stop().await;
    }
}

#[tokio::test]
async fn one_states_a_wrong_maximum() {
    for (mutant, stated) in [(None, 5), (Some(Mutant::WrongMaximum), 6)] {
        let (_dir, server) = fresh(mutant).await;
        server.put(5, 0, "new").await;
        let refusal = Rejected {
            seen: FencingToken(stated),
            got: FencingToken(1),
        };
        assert_eq!(server.put(1, 0, "old").await, refusal);
        server.stop().await;
    }
}

#[tokio::test]
async fn one_names_a_position_twice() {
    for (mutant, second) in [(None, 2), (Some(Mutant::PositionTwice), 1)] {
        let (_dir, server) = fresh(mutant).await;
        assert_eq!(server.put(1, 0, "a").await, Accepted { position: 1 });
        assert_eq!(server.put(2, 0, "b").await, Accepted { position: second });
        assert_eq!(server.put(3, 0, "c").await, Accepted { position: 3 });
        let rows = server.client.log().await.unwrap().into_iter();
        let positions: Vec<u64> = rows.map(|row| row.seq).collect();
        assert_eq!(positions, [1, 2, 3], "the log is right");
        server.stop().await;
    }
}

/// `durability` tests that a correct resource does not answer before the sync.
#[tokio::test]
async fn one_answers_before_the_sync() {
    let mut state = State::new(Fence::On);
    state.misbehave(Some(Mutant::AnswerBeforeSync));
    let write = WriteToSlowDisk::begin(state).await;
    let answer = timeout(Duration::from_secs(5), write.answer).await;
    assert_eq!(answer.unwrap().unwrap(), Accepted { position: 1 });
    write.disk_goes_on.send(()).expect("a disk that waits");
}
