//! A worker against a real Redis and a real resource, with its stdin and
//! stdout in the test's hands.

pub mod kit;
mod nested;
mod timed;

use crate::support::docker_shared;
use fencepost::model::ReleaseOutcome;
use fencepost::model::{EventKind, Fence, Gate, Step};
use fencepost::worker::WorkerEnd;
use kit::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::test]
async fn a_round_is_told_from_ready_to_done() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--work 1ms --rounds 2");
    let told = worker.told_to_the_end().await;
    let names: Vec<_> = told.iter().map(EventKind::name).collect();
    let round = [
        "acquiring",
        "acquired",
        "writing",
        "write_accepted",
        "releasing",
        "released",
    ];
    let expected = [&["ready"][..], &round, &round, &["done"]].concat();
    assert_eq!(names, expected);
    assert_eq!(told.last(), Some(&EventKind::Done { rounds: 2 }));
    assert_eq!(worker.end().await.unwrap(), WorkerEnd::Done);

    let stored = place.stored().await;
    assert_eq!(
        stored["count"], 2,
        "the second round read what the first wrote"
    );
    assert_eq!(stored["by"], "a");
}

#[tokio::test]
async fn gates_hold_a_worker_until_their_go() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let all: Vec<&str> = Gate::ALL.iter().map(|gate| gate.name()).collect();
    let all = all.join(",");
    let mut worker = place.worker("a", &format!("--gates {all}"));
    for (gate, round) in [
        (Gate::Start, 0),
        (Gate::AfterAcquire, 1),
        (Gate::BeforeWrite, 1),
        (Gate::BeforeRelease, 1),
    ] {
        let told = worker.told_until("at_gate").await;
        assert_eq!(told.last(), Some(&EventKind::AtGate { round, gate }));
        worker.say("this is not for a worker").await;
        worker.stays_silent().await;
        worker.go(gate, round).await;
    }
    worker.told_until("done").await;
}

#[tokio::test]
async fn the_write_leaves_after_its_gate_though_the_lease_is_lost() {
    let _turn = docker_shared();
    for (fence, verdict) in [
        (Fence::On, "write_rejected"),
        (Fence::Off, "write_accepted"),
    ] {
        let place = Place::new(fence).await;
        // A watchdog would keep the lease: a frozen process has none, and nor has this one.
        let mut late = place.worker("late", "--ttl 1s --gates before_write");
        late.told_until("at_gate").await;
        let mut next = place.worker("next", "--work 1ms");
        let told = next.told_until("write_accepted").await;
        assert!(names(&told).contains(&"acquired"));
        next.told_until("done").await;

        late.go(Gate::BeforeWrite, 1).await;
        let told = late.told_until("done").await;
        assert_eq!(
            names(&told),
            ["writing", verdict, "releasing", "released", "done"]
        );
        assert_eq!(outcome(&told), Some(ReleaseOutcome::Expired));
        let by = if fence == Fence::On { "next" } else { "late" };
        let stored = place.stored().await;
        assert_eq!((&stored["by"], &stored["count"]), (&by.into(), &1.into()));
    }
}

#[tokio::test]
async fn a_worker_that_sees_its_lease_lost_stops_or_goes_on_as_it_was_told() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = "--ttl 1s --work 1ms --pause 1500ms --renew";
    let told = place.worker("a", flags).told_to_the_end().await;
    assert_eq!(
        without_renewals(&told)[3..],
        ["lost", "releasing", "released", "done"],
        "the watchdog stood still with the rest"
    );
    let flags = format!("{flags} --on-lost ignore");
    let told = place.worker("a", &flags).told_to_the_end().await;
    assert_eq!(
        without_renewals(&told)[3..],
        [
            "lost",
            "writing",
            "write_accepted",
            "releasing",
            "released",
            "done"
        ]
    );
}

#[tokio::test]
async fn work_ends_early_when_the_lease_is_lost() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--ttl 1s --work 60s");
    let told = worker.told_to_the_end().await;
    assert_eq!(names(&told)[3..], ["lost", "releasing", "released", "done"]);
}

#[tokio::test]
async fn a_watchdog_keeps_the_lease_through_long_work() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--ttl 2s --work 3s --renew");
    let told = worker.told_to_the_end().await;
    assert!(names(&told).contains(&"renewed"));
    assert!(names(&told).contains(&"write_accepted"));
    assert_eq!(outcome(&told), Some(ReleaseOutcome::Released));
}

#[tokio::test]
async fn the_end_of_the_input_ends_a_worker_in_the_middle() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let mut worker = place.worker("a", "--work 60s --ttl 120s");
    worker.told_until("acquired").await;
    drop(worker.lines.take());
    assert_eq!(worker.end().await.unwrap(), WorkerEnd::Stopped);
}

#[tokio::test]
async fn servers_that_are_not_there_are_failures_with_a_deadline() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = format!("--endpoints {NOBODY} --acquire-timeout 200ms");
    let told = place.worker("a", &flags).told_to_the_end().await;
    assert_eq!(names(&told), ["ready", "acquiring", "failed", "done"]);
    assert_failed(&told[2], Step::Acquire);

    let flags = format!("--resource http://{NOBODY}");
    let told = place.worker("a", &flags).told_to_the_end().await;
    assert_eq!(
        names(&told)[2..],
        ["acquired", "failed", "releasing", "released", "done"]
    );
    assert_failed(&told[3], Step::Read);
}

#[tokio::test]
async fn a_task_that_cannot_be_done_is_refused_at_once() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    for flags in ["--endpoints a:1,b:2", "--ttl 0ms", "--resource nowhere"] {
        assert!(place.worker("a", flags).end().await.is_err(), "{flags}");
    }
}

#[tokio::test]
async fn metrics_are_served_while_the_worker_lives() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    // A port that was free a moment ago.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let flags = format!("--metrics {address} --gates before_release");
    let mut worker = place.worker("a", &flags);
    worker.told_until("at_gate").await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    for line in ["lock_acquire_successes_total 1", "lock_leases_held 1"] {
        assert!(page.contains(line), "{page}");
    }
}
