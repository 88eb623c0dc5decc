//! A drive on a cluster in memory: the tests play the workers.

use super::*;
use crate::cluster::fake::{FakeCluster, FakeWorker};
use crate::cluster::{Cluster, NodeSpec};
use crate::faults::journal::Journal;
use crate::faults::{Field, WorkerClocks};
use crate::run::clock_desk::clock_desk;
use crate::scenario::{Scenario, Settings, Surroundings};
use futures_util::FutureExt;
use std::path::Path;

/// The timeline of scenarios/pause-gt-ttl.yml: `b` starts while `a` is paused.
const PAUSE: &str = "
workers:
  a: { key: k, gate: before_write }
  b: { key: k, start: a.paused }
timeline:
  - { when: a.at_gate, do: { pause: a, longer_than: ttl } }
  - { when: b.write_accepted, do: { resume: a } }";

const ALONE: &str = "
workers:
  a: { key: k }
timeline: []";

const PROOF_TAKES: Duration = Duration::from_secs(1);

struct Task;

impl crate::progress::Task for Task {
    fn detail(&self, _: &str) {}

    fn finish(&self, _: &str) {}
}

/// Everything that a drive and its workers need.
struct Stage {
    scenario: Scenario,
    cluster: Arc<FakeCluster>,
    evidence: Evidence,
    folder: tempfile::TempDir,
    /// The sender by which the resource is heard.
    tell: mpsc::Sender<Happening>,
    happenings: mpsc::Receiver<Happening>,
}

impl Stage {
    fn new(workers_and_timeline: &str) -> Stage {
        let text = format!(
            "name: s\nabout: x\ntopology: redis\nlock: {{ backend: redis, ttl: 2s }}{workers_and_timeline}\ncases: {{ one: {{ fence: on, expect: {{ violations: 0 }} }} }}\n"
        );
        let around = Surroundings::Recorded;
        let scenario = Scenario::parse(Path::new("s.yml"), &text, &Settings::default(), &around);
        let folder = tempfile::tempdir().unwrap();
        let (tell, happenings) = mpsc::channel(16);
        Stage {
            scenario: scenario.unwrap_or_else(|error| panic!("{error}")),
            cluster: Arc::new(FakeCluster::new(Some(PROOF_TAKES))),
            evidence: Evidence::create(folder.path().join("case")).unwrap(),
            folder,
            tell,
            happenings,
        }
    }

    /// Makes a stage whose processes ignore signals.
    fn with_deaf_workers(workers_and_timeline: &str) -> Stage {
        Stage {
            cluster: Arc::new(FakeCluster::new(None)),
            ..Stage::new(workers_and_timeline)
        }
    }

    /// Drives while the test plays the workers, in the order of their names. Workers that the test
    /// keeps end with it.
    async fn drive<T: Future>(
        self,
        play: impl FnOnce(Vec<FakeWorker>, Arc<FakeCluster>, Box<dyn WorkerClocks>) -> T,
    ) -> RunResult<DriveResult> {
        let setup = &self.scenario.cases[0].setup;
        let mut workers = Workers::default();
        let mut played = Vec::new();
        for worker in &setup.workers {
            let node = NodeSpec::new(worker.name.clone(), "", Vec::new());
            let console = self.cluster.start_attached(&node).await.unwrap();
            workers.add(&worker.name, console, self.tell.clone());
            played.push(self.cluster.worker(&worker.name));
        }
        let (desk, questions) = clock_desk();
        let (of_nemesis, _) = clock_desk();
        let cluster = Arc::clone(&self.cluster) as Arc<dyn Cluster>;
        let field = Field::without_services(cluster, Box::new(of_nemesis));
        let journal = Journal::new(self.folder.path(), &"r".into());
        let nemesis = Arc::new(Nemesis::new(Arc::new(field), journal, Box::new(drop)));
        let drive = Drive::new(
            setup,
            Timeline::new(setup, 1),
            workers,
            &nemesis,
            &self.evidence,
            questions,
            &Task,
        );
        let play = play(played, Arc::clone(&self.cluster), Box::new(desk));
        let driving = drive.run(self.happenings);
        let (driven, _) = tokio::join!(driving, play);
        driven
    }
}

fn gaps(driven: RunResult<DriveResult>) -> Vec<String> {
    let gaps = driven.unwrap().gaps.into_iter();
    gaps.map(|gap| gap.text).collect()
}

fn go(gate: &str, round: u32) -> Option<String> {
    Some(format!("{{\"go\":\"{gate}\",\"round\":{round}}}"))
}

fn ready() -> EventKind {
    EventKind::ready(Vec::new())
}

fn at_gate() -> EventKind {
    EventKind::AtGate {
        round: 1,
        gate: Gate::BeforeWrite,
    }
}

fn accepted() -> EventKind {
    EventKind::WriteAccepted {
        round: 1,
        key: "k".to_owned(),
        token: None,
        owner: "o".to_owned(),
        position: 1,
    }
}

fn done() -> EventKind {
    EventKind::Done { rounds: 1 }
}

/// Plays both workers up to the gate at which `a` waits.
async fn up_to_the_gate(workers: Vec<FakeWorker>) -> [FakeWorker; 2] {
    let Ok([mut a, b]) = <[FakeWorker; 2]>::try_from(workers) else {
        panic!("two workers");
    };
    a.says(ready()).await;
    b.says(ready()).await;
    assert_eq!(a.told().await, go("start", 0));
    a.says(at_gate()).await;
    [a, b]
}

#[tokio::test(start_paused = true)]
async fn gate_opens_and_worker_starts_only_after_the_pause_is_proven() {
    let driven = Stage::new(PAUSE).drive(async |workers, cluster, _clocks| {
        let [mut a, mut b] = up_to_the_gate(workers).await;
        tokio::time::sleep(PROOF_TAKES / 2).await;
        assert!(a.told().now_or_never().is_none(), "the gate is closed");
        assert!(b.told().now_or_never().is_none(), "b waits for a.paused");
        assert_eq!(a.told().await, go("before_write", 1));
        assert!(cluster.is_stopped("a"));
        assert_eq!(b.told().await, go("start", 0));
        b.says(accepted()).await;
        b.says(done()).await;
        drop(b);
        while cluster.is_stopped("a") {
            tokio::time::sleep(PROOF_TAKES).await;
        }
        a.says(done()).await;
    });
    let driven = driven.await.unwrap();
    assert!(driven.gaps.is_empty() && !driven.unanswered, "{driven:?}");
}

#[tokio::test(start_paused = true)]
async fn gate_that_triggers_nothing_opens_at_once() {
    let text = PAUSE.replace("a.at_gate", "a.at_gate#2");
    let text = text.replace("before_write }", "before_write, rounds: 2 }");
    let driven = Stage::new(&text).drive(async |workers, cluster, _clocks| {
        let [mut a, b] = up_to_the_gate(workers).await;
        assert_eq!(a.told().await, go("before_write", 1));
        assert!(!cluster.is_stopped("a"));
        for worker in [a, b] {
            worker.says(done()).await;
        }
    });
    let never = ["`a.paused` never came", "`a.at_gate#2` never came"];
    assert_eq!(gaps(driven.await)[..2], never);
}

#[tokio::test(start_paused = true)]
async fn unproven_fault_ends_the_drive_with_a_gap() {
    let driven = Stage::with_deaf_workers(PAUSE).drive(async |workers, _cluster, _clocks| {
        let [mut a, mut b] = up_to_the_gate(workers).await;
        assert_eq!(a.told().await, None, "the gate stays closed");
        assert_eq!(b.told().await, None, "b is never started");
    });
    let gaps = driven.await.unwrap().gaps;
    assert_eq!(gaps.len(), 1, "{gaps:?}");
    assert!(gaps[0].fault.is_some());
    let begins = "not proven: pause of a: ";
    assert!(gaps[0].text.starts_with(begins), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn worker_that_ends_early_is_a_gap_with_its_last_words() {
    let driven = Stage::new(ALONE).drive(async |mut workers, _cluster, _clocks| {
        let a = workers.remove(0);
        a.says(ready()).await;
        a.fails("no route to host").await;
    });
    let gap = "worker a ended before it was done: no route to host";
    assert_eq!(gaps(driven.await), [gap]);
}

#[tokio::test(start_paused = true)]
async fn worker_that_a_fault_killed_is_not_a_gap() {
    let text = ALONE.replace("[]", "[{ when: a.acquiring, do: { kill: a } }]");
    let driven = Stage::new(&text).drive(async |mut workers, _cluster, _clocks| {
        let a = workers.remove(0);
        a.says(ready()).await;
        let key = "k".to_owned();
        a.says(EventKind::Acquiring { round: 1, key }).await;
        tokio::time::sleep(PROOF_TAKES).await;
    });
    let driven = driven.await.unwrap();
    assert!(driven.gaps.is_empty(), "{driven:?}");
    assert!(driven.unanswered, "a write of it may be under way");
}

#[tokio::test(start_paused = true)]
async fn line_that_is_not_an_event_is_a_gap() {
    let driven = Stage::new(ALONE).drive(async |mut workers, _cluster, _clocks| {
        let mut a = workers.remove(0);
        a.prints("hello").await;
        assert_eq!(a.told().await, None);
    });
    let gaps = gaps(driven.await);
    let begins = "worker a printed a line that is not an event (";
    assert!(
        gaps[0].starts_with(begins) && gaps[0].ends_with("): hello"),
        "{gaps:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn failed_write_leaves_the_record_open() {
    let driven = Stage::new(ALONE).drive(async |mut workers, _cluster, _clocks| {
        let a = workers.remove(0);
        a.says(ready()).await;
        let failed = EventKind::Failed {
            round: 1,
            during: Step::Write,
            error: "no answer".to_owned(),
        };
        a.says(failed).await;
        a.says(done()).await;
    });
    let driven = driven.await.unwrap();
    assert!(driven.unanswered && driven.gaps.is_empty(), "{driven:?}");
}

#[tokio::test(start_paused = true)]
async fn end_of_a_service_is_an_error() {
    let stage = Stage::new(ALONE);
    let tell = stage.tell.clone();
    let driven = stage.drive(async |mut workers, _cluster, _clocks| {
        let mut a = workers.remove(0);
        let (node, reason) = (Name::from("resource"), "its log ended".to_owned());
        let ended = Happening::ServiceEnded { node, reason };
        tell.send(ended).await.unwrap();
        assert_eq!(a.told().await, None);
    });
    let error = driven.await.unwrap_err().to_string();
    let expected = "resource ended in the middle of the run\nits log ended";
    assert_eq!(error, expected);
}

#[tokio::test(start_paused = true)]
async fn deadline_names_who_is_not_ready() {
    let driven = Stage::new(PAUSE).drive(async |mut workers, _cluster, _clocks| {
        workers[1].says(ready()).await;
        assert_eq!(workers[0].told().await, None);
    });
    let gaps = gaps(driven.await);
    let (limit, awaited) = gaps[0].split_once(": ").unwrap();
    assert!(limit.starts_with("gave up after "), "{gaps:?}");
    assert_eq!(awaited, "waiting for a to be ready");
}

#[tokio::test(start_paused = true)]
async fn deadline_names_each_event_that_did_not_come_once() {
    let text = format!("{PAUSE}\n  - {{ when: b.write_accepted, do: {{ wait: 1s }} }}");
    let driven = Stage::new(&text).drive(async |mut workers, _cluster, _clocks| {
        for worker in &workers {
            worker.says(ready()).await;
        }
        assert_eq!(workers[0].told().await, go("start", 0));
        assert_eq!(workers[0].told().await, None);
    });
    let gaps = gaps(driven.await);
    let awaited = "waiting for a.paused, a.at_gate, b.write_accepted";
    assert!(gaps[0].ends_with(awaited), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn last_row_of_the_resource_is_waited_for_after_the_last_worker() {
    let waits = "[{ when: resource.write_accepted, do: { wait: 1s } }]";
    let text = ALONE.replace("[]", waits);
    let driven = Stage::new(&text).drive(async |mut workers, _cluster, _clocks| {
        let a = workers.remove(0);
        a.says(ready()).await;
        a.says(done()).await;
    });
    let started = Instant::now();
    assert_eq!(gaps(driven.await), ["`resource.write_accepted` never came"]);
    assert_eq!(started.elapsed(), LAST_ROWS);
}

#[tokio::test(start_paused = true)]
async fn worker_is_asked_for_its_clocks_over_its_console() {
    let driven = Stage::new(ALONE).drive(async |mut workers, _cluster, clocks| {
        let mut a = workers.remove(0);
        a.says(ready()).await;
        assert_eq!(a.told().await, go("start", 0));
        let name = "a".into();
        let answer = async {
            assert_eq!(a.told().await.as_deref(), Some("{\"tell\":\"clock\"}"));
            let clock = EventKind::Clock {
                realtime_ns: 7,
                monotonic_ns: 8,
            };
            a.says(clock).await;
        };
        let (reading, ()) = tokio::join!(clocks.read(&name), answer);
        assert_eq!(reading.unwrap().monotonic_ns, 8);
        a.says(done()).await;
    });
    assert_eq!(gaps(driven.await), [""; 0]);
}
