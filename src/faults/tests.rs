//! Reactions of the nemesis to the answers of a cluster. Other tests use real processes in
//! containers, but a real engine cannot be made to stumble on demand.

use super::*;
use crate::cluster::ThreadState;
use crate::cluster::fake::FakeCluster;
use crate::model::{ClockName, FaultParameters, FaultStage, Name, NodeFault};
use async_trait::async_trait;

const STOPPED: &str = "TT";
const RUNNING: &str = "SR";
const ENDED: &str = "";
/// The answer of an engine about a container that ends in that very moment.
const STUMBLE: &str = "!";

fn nemesis(looks: &[&str]) -> (Nemesis, Arc<Mutex<Vec<FaultRow>>>) {
    let answer = |look: &&str| match *look {
        STUMBLE => Err("ttrpc: closed: unknown"),
        states => Ok(states.chars().map(ThreadState).collect()),
    };
    let cluster = FakeCluster::with_looks(looks.iter().map(answer));
    let rows = Arc::new(Mutex::new(Vec::new()));
    let recorder = Arc::clone(&rows);
    let record = Box::new(move |row| recorder.lock().push(row));
    let field = Field::without_services(Arc::new(cluster), Box::new(NoClocks));
    let journals = std::env::temp_dir().join(format!("fencepost-test-{}", uuid::Uuid::new_v4()));
    let journal = Journal::new(&journals, &"test".into());
    (Nemesis::new(Arc::new(field), journal, record), rows)
}

struct NoClocks;

#[async_trait]
impl WorkerClocks for NoClocks {
    async fn read(&self, _: &Name) -> Proof<ClockReading> {
        Err(UnprovenReason::NoClock)
    }
}

impl Nemesis {
    async fn pause(&self, node: &str, longer_than: Option<Duration>) -> Result<(), NotProven> {
        let pause = Fault::Node(NodeFault {
            kind: FaultKind::Pause,
            node: node.into(),
            longer_than,
            parameters: FaultParameters::default(),
        });
        self.inject(&pause, None, None).await.map(drop)
    }

    async fn resume(&self, node: &str) -> Result<(), NotProven> {
        self.continue_by(FaultKind::Resume, &node.into()).await
    }
}

fn stages(rows: &Mutex<Vec<FaultRow>>) -> Vec<(FaultKind, FaultStage)> {
    let rows = rows.lock();
    rows.iter().map(|row| (row.fault, row.stage)).collect()
}

/// Returns the reason of the last row, after a check that its words say the same.
fn last_reason(rows: &Mutex<Vec<FaultRow>>) -> UnprovenReason {
    let row = rows.lock().last().cloned().expect("a row");
    let reason = row.reason.expect("a reason");
    assert_eq!(row.detail, reason.to_string());
    reason
}

#[tokio::test(start_paused = true)]
async fn a_pause_counts_once_every_thread_stands_still() {
    let (nemesis, rows) = nemesis(&[RUNNING, "TS", STUMBLE, STOPPED]);
    nemesis.pause("a", None).await.unwrap();
    let pause = |stage| (FaultKind::Pause, stage);
    let expected = [FaultStage::Requested, FaultStage::Observed].map(pause);
    assert_eq!(stages(&rows), expected);
    assert_eq!(rows.lock()[1].detail, "all 2 threads in state T");
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_does_not_bite_is_unproven() {
    let (nemesis, rows) = nemesis(&[RUNNING]);
    let NotProven { fault, text, .. } = nemesis.pause("a", None).await.unwrap_err();
    assert!(text.contains("2 threads in states S R"), "{text}");
    assert_eq!(fault, Some(rows.lock()[1].id));
    let threads = "2 threads in states S R".to_owned();
    let reason = UnprovenReason::ThreadsUnlike { threads };
    assert_eq!(last_reason(&rows), reason);
    assert_eq!(stages(&rows)[1], (FaultKind::Pause, FaultStage::Unproven));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_ends_while_it_is_looked_at_was_resumed() {
    let (nemesis, _) = nemesis(&[RUNNING, STOPPED, STUMBLE, STUMBLE, ENDED]);
    nemesis.pause("a", None).await.unwrap();
    nemesis.resume("a").await.unwrap();
    assert!(nemesis.heal().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_never_answers_proves_nothing() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED, STUMBLE]);
    nemesis.pause("a", None).await.unwrap();
    let reason = nemesis.resume("a").await.unwrap_err().text;
    assert!(reason.contains("ttrpc"), "{reason}");
    let of_cluster = matches!(last_reason(&rows), UnprovenReason::Cluster { .. });
    assert!(of_cluster, "{rows:?}");
}

#[tokio::test(start_paused = true)]
async fn a_resume_waits_until_the_pause_has_been_long_enough() {
    let (nemesis, _) = nemesis(&[RUNNING, STOPPED, STOPPED, RUNNING]);
    let bound = Duration::from_secs(2);
    nemesis.pause("a", Some(bound)).await.unwrap();
    let paused_at = Instant::now();
    nemesis.resume("a").await.unwrap();
    assert!(paused_at.elapsed() > bound);
}

#[tokio::test(start_paused = true)]
async fn a_resume_of_what_nobody_paused_proves_nothing() {
    let (nemesis, rows) = nemesis(&[RUNNING]);
    let reason = nemesis.resume("a").await.unwrap_err().text;
    assert!(reason.contains("nothing had paused it"), "{reason}");
    let how = "paused".to_owned();
    assert_eq!(last_reason(&rows), UnprovenReason::NothingStopped { how });
}

#[tokio::test(start_paused = true)]
async fn what_stands_still_already_is_not_stopped_again() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED]);
    nemesis.pause("a", None).await.unwrap();
    let reason = nemesis.pause("a", None).await.unwrap_err().text;
    assert!(reason.contains("stopped already"), "{reason}");
    assert_eq!(last_reason(&rows), UnprovenReason::StoppedAlready);
    assert_eq!(stages(&rows)[3], (FaultKind::Pause, FaultStage::Unproven));
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_somebody_else_ended_did_not_last() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED, RUNNING]);
    nemesis.pause("a", None).await.unwrap();
    let NotProven { fault, text, .. } = nemesis.resume("a").await.unwrap_err();
    assert!(text.contains("somebody else has continued it"), "{text}");
    let why = Box::new(UnprovenReason::ContinuedByOthers);
    assert_eq!(last_reason(&rows), UnprovenReason::DidNotLast { why });
    assert_eq!(fault, Some(rows.lock()[3].id));
    assert_eq!(stages(&rows)[3], (FaultKind::Resume, FaultStage::Unproven));
}

#[tokio::test(start_paused = true)]
async fn after_the_healing_nothing_is_done_any_more() {
    let (nemesis, rows) = nemesis(&[RUNNING]);
    assert!(nemesis.heal().await.is_empty());
    let reason = nemesis.pause("a", None).await.unwrap_err().text;
    assert!(reason.contains("the case is over"), "{reason}");
    assert_eq!(last_reason(&rows), UnprovenReason::CaseOver);
}

#[tokio::test(start_paused = true)]
async fn healing_undoes_what_stands_and_says_so_at_the_pause() {
    let (nemesis, rows) = nemesis(&[RUNNING, STOPPED, STOPPED, RUNNING]);
    let minute = Duration::from_secs(60);
    nemesis.pause("a", Some(minute)).await.unwrap();
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
    assert_eq!(faults, [Some(rows.lock()[0].id)]);
}

#[tokio::test(start_paused = true)]
async fn request_of_a_moved_clock_has_its_parameters_as_data() {
    let (nemesis, rows) = nemesis(&[RUNNING]);
    let (node, clock) = (Name::from("a"), ClockName::Monotonic);
    let (by_ms, ppm) = (-1_500, 300);
    let moved = |kind, by_ms, ppm| {
        let parameters = FaultParameters {
            clock: Some(clock),
            by_ms,
            ppm,
            ..FaultParameters::default()
        };
        Fault::with(kind, node.clone(), parameters)
    };
    let skew = moved(FaultKind::Skew, Some(by_ms), None);
    nemesis.inject(&skew, None, None).await.unwrap_err();
    let drift = moved(FaultKind::Drift, None, Some(ppm));
    nemesis.inject(&drift, None, None).await.unwrap_err();
    let rows = rows.lock();
    let data = rows.iter().map(|row| (row.clock, row.by_ms, row.ppm));
    let nothing = (None, None, None);
    let (skewed, drifts) = (
        (Some(clock), Some(by_ms), None),
        (Some(clock), None, Some(ppm)),
    );
    assert_eq!(data.collect::<Vec<_>>(), [skewed, nothing, drifts, nothing]);
}
