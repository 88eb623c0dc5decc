//! Several holds on one grant: entered one after the other, left before the release.

use super::kit::*;
use crate::support::docker_shared;
use fencepost::model::ReleaseOutcome;
use fencepost::model::{EventKind, Fence, Gate, Step};

#[tokio::test]
async fn holds_are_entered_and_left_around_the_one_write() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = "--nested 3 --work 1ms --rounds 2";
    let told = place.worker("a", flags).told_to_the_end().await;
    let round = [
        "acquiring",
        "acquired",
        "reentered",
        "reentered",
        "writing",
        "write_accepted",
        "left",
        "left",
        "releasing",
        "released",
    ];
    let expected = [&["ready"][..], &round, &round, &["done"]].concat();
    assert_eq!(names(&told), expected);

    let first = &told[2..11];
    let EventKind::Acquired { token, .. } = first[0] else {
        panic!("{first:?}");
    };
    let holds = first.iter().filter_map(|kind| match kind {
        EventKind::Reentered { token, holds, .. } | EventKind::Left { token, holds, .. } => {
            Some((*token, *holds))
        }
        _ => None,
    });
    let holds: Vec<_> = holds.collect();
    assert_eq!(holds, [(token, 2), (token, 3), (token, 2), (token, 1)]);
}

#[tokio::test]
async fn only_the_last_of_the_holds_frees_the_lock() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = "--nested 2 --ttl 60s --work 1ms --gates before_leave,before_release";
    let mut holder = place.worker("holder", flags);
    for gate in [Gate::BeforeLeave, Gate::BeforeRelease] {
        let told = holder.told_until("at_gate").await;
        assert_eq!(told.last(), Some(&EventKind::AtGate { round: 1, gate }));
        let mut other = place.worker("other", "--acquire-timeout 100ms");
        let told = other.told_to_the_end().await;
        assert_failed(&told[2], Step::Acquire);
        holder.go(gate, 1).await;
    }
    holder.told_until("released").await;
    let mut other = place.worker("other", "--acquire-timeout 10s");
    other.told_until("acquired").await;
}

#[tokio::test]
async fn the_watchdog_keeps_the_one_lease_for_every_hold() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = "--nested 2 --ttl 2s --work 1ms --renew --gates before_leave";
    let mut worker = place.worker("a", flags);
    worker.told_until("at_gate").await;
    // Four times about a third of the TTL.
    for _ in 0..4 {
        worker.told_until("renewed").await;
    }
    worker.go(Gate::BeforeLeave, 1).await;
    let told = worker.told_to_the_end().await;
    assert_eq!(
        without_renewals(&told),
        ["left", "releasing", "released", "done"]
    );
    assert_eq!(outcome(&told), Some(ReleaseOutcome::Released));
}

#[tokio::test]
async fn a_loss_is_told_once_for_all_holds() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = "--nested 3 --ttl 1s --work 60s";
    let told = place.worker("a", flags).told_to_the_end().await;
    assert_eq!(
        names(&told)[3..],
        [
            "reentered",
            "reentered",
            "lost",
            "left",
            "left",
            "releasing",
            "released",
            "done"
        ]
    );
}

#[tokio::test]
async fn a_lost_lease_is_not_entered_again() {
    let _turn = docker_shared();
    let place = Place::new(Fence::On).await;
    let flags = "--nested 2 --ttl 100ms --gates after_acquire,before_leave";
    let mut late = place.worker("late", flags);
    late.told_until("at_gate").await;
    // Whoever is granted the lock next is so after the end of this lease.
    let mut next = place.worker("next", "--work 1ms");
    next.told_until("done").await;
    late.go(Gate::AfterAcquire, 1).await;
    let told = late.told_to_the_end().await;
    assert_eq!(names(&told), ["lost", "releasing", "released", "done"]);
}
