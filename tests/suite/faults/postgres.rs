use super::playground::{Hand, Playground};
use crate::support::named;
use fencepost::model::{Fault, FaultKind, FaultParameters};

const POSTGRES: &str = "postgres";

#[tokio::test]
async fn every_fault_bites_and_heals() {
    let playground = Playground::start("postgres", Hand::Strikes).await;
    for fault in faults() {
        playground.bites_and_heals(&fault).await;
    }
}

#[tokio::test]
async fn no_fault_counts_that_was_only_asked_for() {
    let playground = Playground::start("postgres", Hand::OnlyPretends).await;
    for fault in faults() {
        playground.is_not_taken_in(&fault).await;
    }
}

/// All that is proven in another way than for a Redis.
fn faults() -> Vec<Fault> {
    let of_node = |kind| Fault::of_node(kind, named(POSTGRES));
    let skew = FaultParameters {
        by_ms: Some(-60_000),
        ..FaultParameters::default()
    };
    vec![
        Fault::with(FaultKind::Skew, named(POSTGRES), skew),
        of_node(FaultKind::Restart),
        of_node(FaultKind::RestartEmpty),
    ]
}
