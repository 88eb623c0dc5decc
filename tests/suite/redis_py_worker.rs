//! The worker in another language, in its own image and on its own: it speaks
//! the worker protocol as our own does.

use crate::support::*;
use fencepost::cluster::docker::DockerRuntime;
use fencepost::cluster::{Console, ConsoleLine, Image, NodeSpec, Runtime, Topology};
use fencepost::cluster::{start_services, topology::Service};
use fencepost::model::{BodyHash, Event, EventKind, Gate, ReleaseOutcome, Step};
use std::time::Duration;
use tokio::time::timeout;
use vdso_clock::raw_monotonic_ns;

const EXAMPLE: &str = "examples/redis-py-worker";
const IMAGE: &str = "fencepost/examples/redis-py-worker:latest";
/// What a worker takes where it is told nothing.
const TTL_NS: u64 = 2_000_000_000;
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn a_worker_in_python_speaks_the_protocol() {
    let cluster = own_cluster("redis-py").await;
    let image = Image::named(EXAMPLE, &[project().into()]);
    assert_eq!(image.name, IMAGE);
    let runtime = DockerRuntime::connect(images_lock()).await.unwrap();
    runtime.prepare(&[image], &Silent).await.unwrap();
    let topology = Topology::load(project().join("compose/redis.yml")).unwrap();
    let services = topology.started().map(|(name, service)| service.node(name));
    let services: Vec<NodeSpec> = services.collect();
    start_services(&*cluster, &services).await.unwrap();
    let start = async |name: &str, settings: &[(&str, &str)]| {
        let node = worker(&topology.workers[0].service, name, settings);
        cluster.start_attached(&node).await.unwrap()
    };

    plays_a_round(start("a", &[("FENCEPOST_GATES", "start,before_write")]).await).await;

    let mut late = start("late", &[("FENCEPOST_GATES", "before_release")]).await;
    told_until(&mut late, "at_gate").await;
    docker_ok(&["exec", &cluster.container("redis"), "redis-cli", "flushall"]);
    go(&mut late, Gate::BeforeRelease, 1).await;
    let told = told_until(&mut late, "done").await;
    let outcome = ReleaseOutcome::Expired;
    assert!(matches!(&told[1], EventKind::Released { outcome: o, .. } if *o == outcome));

    // A release without an answer is a step that failed, and the last one of its round.
    let mut unanswered = start("unanswered", &[("FENCEPOST_GATES", "before_release")]).await;
    told_until(&mut unanswered, "at_gate").await;
    docker_ok(&["kill", &cluster.container("redis")]);
    go(&mut unanswered, Gate::BeforeRelease, 1).await;
    let told = told_until(&mut unanswered, "done").await;
    assert_eq!(names(&told), ["releasing", "failed", "done"]);
    let during = Step::Release;
    assert!(matches!(&told[1], EventKind::Failed { during: d, .. } if *d == during));

    let mut orphan = start("orphan", &[("FENCEPOST_GATES", "start")]).await;
    told_until(&mut orphan, "at_gate").await;
    drop(orphan);
    cluster.await_end(&named("orphan")).await.unwrap();

    let mut terminated = start("terminated", &[("FENCEPOST_GATES", "start")]).await;
    told_until(&mut terminated, "at_gate").await;
    docker_ok(&["kill", "-s", "TERM", &cluster.container("terminated")]);
    rest(terminated.lines).await;

    let refusing = start("refusing", &[("FENCEPOST_RENEW", "true")]).await;
    let said = rest(refusing.lines).await;
    assert!(said.contains("FENCEPOST_RENEW"), "{said}");
    cluster.remove().await.unwrap();
}

/// The mandatory experiment with redis-py's own lock in the place of ours.
#[test]
fn a_pause_is_too_long_for_redis_py_as_well() {
    let _turn = docker_shared();
    let results = fresh_folder("redis-py");
    let setting = format!("worker.image={EXAMPLE}");
    let folder = results.to_str().expect("a readable path");
    let ended = fencepost(&[
        "run",
        "pause-gt-ttl",
        "--set",
        &setting,
        "--results",
        folder,
    ]);
    ended.expect_code(0).expect_said(&[
        "the resource accepts a's write with token 1, although 1 < 2",
        "stale fencing token: seen 2, got 1",
        &format!("with {setting}"),
    ]);
    // Years later, too, without the folder that it was made from.
    let latest = results.join("pause-gt-ttl/latest");
    let again = offline(&["check", latest.to_str().expect("a readable path")]);
    again.expect_code(0).expect_said(&["the same as recorded"]);
}

async fn plays_a_round(mut worker: Console) {
    told_until(&mut worker, "at_gate").await;
    worker.stdin.say(r#"{"tell":"clock"}"#).await.unwrap();
    let told = told_until(&mut worker, "clock").await;
    let EventKind::Clock { monotonic_ns, .. } = told[0] else {
        panic!("{told:?}");
    };
    assert!(monotonic_ns > 0);
    go(&mut worker, Gate::Start, 0).await;
    let told = told_until(&mut worker, "at_gate").await;
    assert_eq!(names(&told), ["acquiring", "acquired", "at_gate"]);
    let EventKind::Acquired { valid_until_ns, .. } = told[1] else {
        panic!("{told:?}");
    };
    let left_ns = valid_until_ns
        .expect("its end")
        .checked_sub(raw_monotonic_ns());
    assert!(left_ns.is_some_and(|ns| ns < TTL_NS), "{left_ns:?}");
    go(&mut worker, Gate::BeforeWrite, 1).await;
    let told = told_until(&mut worker, "done").await;
    assert_eq!(
        names(&told),
        ["writing", "write_accepted", "releasing", "released", "done"]
    );
    let EventKind::Writing { token, body, .. } = &told[0] else {
        panic!("{told:?}");
    };
    let token = token.expect("a token");
    let sent = format!(r#"{{"count": 1, "by": "a", "token": {token}}}"#);
    assert_eq!(*body, Some(BodyHash::of(sent.as_bytes())));
    assert_eq!(told.last(), Some(&EventKind::Done { rounds: 1 }));
    rest(worker.lines).await;
}

fn worker(template: &Service, name: &str, settings: &[(&str, &str)]) -> NodeSpec {
    let mut node = template.node(&named(name));
    node.image = IMAGE.to_owned();
    for (setting, value) in settings {
        let (setting, value) = (setting.to_string(), value.to_string());
        node.environment.insert(setting, value);
    }
    node
}

async fn go(worker: &mut Console, gate: Gate, round: u32) {
    let line = format!(r#"{{"go":"{gate}","round":{round}}}"#);
    worker.stdin.say(&line).await.unwrap();
}

/// Every line has to be an event that the harness understands, up to this one.
async fn told_until(worker: &mut Console, name: &str) -> Vec<EventKind> {
    let mut told = Vec::new();
    let telling = async {
        while let Some(line) = worker.lines.recv().await {
            let ConsoleLine::Out(line) = line else {
                panic!("{line:?}");
            };
            let event: Event = serde_json::from_str(&line).expect(&line);
            told.push(event.kind);
            if told.last().is_some_and(|kind| kind.name() == name) {
                return;
            }
        }
        panic!("it ended before it said {name}");
    };
    let came = timeout(PATIENCE, telling).await;
    assert!(came.is_ok(), "{name} did not come: {told:?}");
    told
}

/// Whatever it still says, until it ends.
async fn rest(mut lines: tokio::sync::mpsc::Receiver<ConsoleLine>) -> String {
    let mut said = String::new();
    let saying = async {
        while let Some(ConsoleLine::Out(line) | ConsoleLine::Err(line)) = lines.recv().await {
            said += &line;
        }
    };
    timeout(PATIENCE, saying).await.expect("it ends");
    said
}

fn names(told: &[EventKind]) -> Vec<&'static str> {
    told.iter().map(EventKind::name).collect()
}
