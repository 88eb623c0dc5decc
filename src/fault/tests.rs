//! How the nemesis takes what a cluster answers. What real processes do is
//! tested on real containers; an engine that stumbles cannot be ordered there.

use super::*;
use crate::cluster::{Cluster, ClusterError, Console, NodeSpec, Signal, ThreadState};
use crate::model::{ClockName, FaultStage, Name};
use async_trait::async_trait;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Answers every look at the threads from a list; the last answer stays.
struct Scripted {
    looks: Mutex<VecDeque<Result<Vec<ThreadState>, ()>>>,
}

const STOPPED: &str = "TT";
const RUNNING: &str = "SR";
const ENDED: &str = "";
/// What engines say about a container that ends in that very moment.
const STUMBLE: &str = "!";

fn nemesis(looks: &[&str]) -> (Nemesis, Arc<Mutex<Vec<FaultRow>>>) {
    let answer = |look: &&str| match *look {
        STUMBLE => Err(()),
        states => Ok(states.chars().map(ThreadState).collect()),
    };
    let cluster = Scripted {
        looks: Mutex::new(looks.iter().map(answer).collect()),
    };
    let rows = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&rows);
    let record = Box::new(move |row| lock(&recorder).push(row));
    let field = Field::new(
        Arc::new(cluster),
        BTreeMap::new(),
        BTreeMap::new(),
        BTreeMap::new(),
        Box::new(NoClocks),
    );
    let journals = std::env::temp_dir().join(format!("fencepost-test-{}", uuid::Uuid::new_v4()));
    let journal = Journal::new(&journals, &"test".into());
    (Nemesis::new(Arc::new(field), journal, record), rows)
}

struct NoClocks;

#[async_trait]
impl WorkerClocks for NoClocks {
    async fn read(&self, worker: &Name) -> Result<ClockReading, String> {
        Err(format!("{worker} has no clock"))
    }
}

impl Nemesis {
    async fn pause(&self, node: &str, longer_than: Option<Duration>) -> Result<(), NotProven> {
        let node = node.into();
        let pause = Fault::Pause { node, longer_than };
        self.inject(&pause, None, None).await.map(drop)
    }
}

fn stages(rows: &Mutex<Vec<FaultRow>>) -> Vec<(FaultKind, FaultStage)> {
    lock(rows)
        .iter()
        .map(|row| (row.fault, row.stage))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_pause_counts_once_every_thread_stands_still() {
    let (nemesis, rows) = nemesis(&[RUNNING, "TS", STUMBLE, STOPPED]);
    nemesis.pause("a", None).await.unwrap();
    assert_eq!(
        stages(&rows),
        [
            (FaultKind::Pause, FaultStage::Requested),
            (FaultKind::Pause, FaultStage::Observed),
        ]
    );
    let proof = lock(&rows)[1].detail.clone();
    assert_eq!(proof, "all 2 threads in state T");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_does_not_bite_is_unproven() {
    let (nemesis, rows) = nemesis(&[RUNNING]);
    let NotProven { fault, text } = nemesis.pause("a", None).await.unwrap_err();
    assert!(text.contains("2 threads in states S R"), "{text}");
    assert_eq!(fault, Some(lock(&rows)[1].id));
    assert_eq!(stages(&rows)[1], (FaultKind::Pause, FaultStage::Unproven));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_ends_while_it_is_looked_at_was_resumed() {
    let (nemesis, _) = nemesis(&[RUNNING, STOPPED, STUMBLE, STUMBLE, ENDED]);
    nemesis.pause("a", None).await.unwrap();
    nemesis.resume(&"a".into()).await.unwrap();
    assert!(nemesis.heal().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_never_answers_proves_nothing() {
    let (nemesis, _) = nemesis(&[RUNNING, STOPPED, STUMBLE]);
    nemesis.pause("a", None).await.unwrap();
    let reason = nemesis.resume(&"a".into()).await.unwrap_err().text;
    assert!(reason.contains("ttrpc"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_resume_waits_until_the_pause_has_been_long_enough() {
    let (nemesis, _) = nemesis(&[RUNNING, STOPPED, STOPPED, RUNNING]);
    let bound = Duration::from_secs(2);
    nemesis.pause("a", Some(bound)).await.unwrap();
    let paused_at = Instant::now();
    nemesis.resume(&"a".into()).await.unwrap();
    assert!(paused_at.elapsed() > bound);
}

#[tokio::test(start_paused = true)]
async fn a_resume_of_what_nobody_paused_proves_nothing() {
    let (nemesis, _) = nemesis(&[RUNNING]);
    let reason = nemesis.resume(&"a".into()).await.unwrap_err().text;
    assert!(reason.contains("nothing had paused it"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn what_stands_still_already_is_not_stopped_again() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED]);
    nemesis.pause("a", None).await.unwrap();
    let reason = nemesis.pause("a", None).await.unwrap_err().text;
    assert!(reason.contains("stopped already"), "{reason}");
    assert_eq!(stages(&rows)[3], (FaultKind::Pause, FaultStage::Unproven));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_somebody_else_ended_did_not_last() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED, RUNNING]);
    nemesis.pause("a", None).await.unwrap();
    let NotProven { fault, text } = nemesis.resume(&"a".into()).await.unwrap_err();
    assert!(text.contains("somebody else has continued it"), "{text}");
    assert_eq!(fault, Some(lock(&rows)[3].id));
    assert_eq!(stages(&rows)[3], (FaultKind::Resume, FaultStage::Unproven));
}

#[tokio::test(start_paused = true)]
async fn after_the_healing_nothing_is_done_any_more() {
    let (nemesis, _) = nemesis(&[RUNNING]);
    assert!(nemesis.heal().await.is_empty());
    let reason = nemesis.pause("a", None).await.unwrap_err().text;
    assert!(reason.contains("the case is over"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn healing_undoes_what_stands_and_says_so_at_the_pause() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED, STOPPED, RUNNING]);
    nemesis
        .pause("a", Some(Duration::from_secs(60)))
        .await
        .unwrap();
    assert!(nemesis.heal().await.is_empty());
    assert_eq!(stages(&rows)[2], (FaultKind::Pause, FaultStage::Healed));
    assert!(nemesis.heal().await.is_empty());
    assert_eq!(stages(&rows).len(), 3, "and only once");
}

#[tokio::test(start_paused = true)]
async fn a_fault_that_healing_cannot_undo_is_named_by_its_id() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED]);
    nemesis.pause("a", None).await.unwrap();
    let problems = nemesis.heal().await;
    let faults: Vec<_> = problems.iter().map(|problem| problem.fault).collect();
    assert_eq!(faults, [Some(lock(&rows)[0].id)]);
}

#[tokio::test(start_paused = true)]
async fn request_of_a_moved_clock_has_its_parameters_as_data() {
    let (nemesis, rows) = nemesis(&[RUNNING]);
    let (node, clock) = (Name::from("a"), ClockName::Monotonic);
    let (by_ms, ppm) = (-1_500, 300);
    let skew = Fault::Skew {
        node: node.clone(),
        clock,
        by_ms,
    };
    nemesis.inject(&skew, None, None).await.unwrap_err();
    let drift = Fault::Drift { node, clock, ppm };
    nemesis.inject(&drift, None, None).await.unwrap_err();
    let rows = lock(&rows);
    let data: Vec<_> = rows
        .iter()
        .map(|row| (row.clock, row.by_ms, row.ppm))
        .collect();
    assert_eq!(
        data,
        [
            (Some(clock), Some(by_ms), None),
            (None, None, None),
            (Some(clock), None, Some(ppm)),
            (None, None, None),
        ]
    );
}

#[async_trait]
impl Cluster for Scripted {
    async fn threads(&self, _: &Name) -> Result<Vec<ThreadState>, ClusterError> {
        let mut looks = lock(&self.looks);
        let look = match looks.len() {
            1 => looks.front().cloned(),
            _ => looks.pop_front(),
        };
        look.expect("at least one answer")
            .map_err(|()| ClusterError::Failed {
                what: "see the threads".to_owned(),
                reason: "ttrpc: closed: unknown".to_owned(),
            })
    }

    async fn signal(&self, _: &Name, _: Signal) -> Result<(), ClusterError> {
        Ok(())
    }

    async fn create_node(&self, _: &NodeSpec) -> Result<(), ClusterError> {
        unreachable!("the nemesis starts nothing")
    }

    async fn start(&self, _: &NodeSpec) -> Result<(), ClusterError> {
        unreachable!("the nemesis starts nothing")
    }

    async fn await_said(&self, _: &Name, _: &str) -> Result<(), ClusterError> {
        unreachable!("the nemesis starts nothing")
    }

    async fn start_attached(&self, _: &NodeSpec) -> Result<Console, ClusterError> {
        unreachable!("the nemesis starts nothing")
    }

    async fn address(&self, _: &Name, _: u16) -> Result<SocketAddr, ClusterError> {
        unreachable!("the nemesis connects to nothing")
    }

    async fn logs(&self, _: &Name) -> Result<String, ClusterError> {
        unreachable!("the nemesis reads no logs")
    }

    async fn remove(&self) -> Result<(), ClusterError> {
        unreachable!("the nemesis removes nothing")
    }
}
