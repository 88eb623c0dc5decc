use super::playground::{Hand, Playground};
use crate::support::named;
use fencepost::model::{Fault, FaultKind, FaultParameters};

#[tokio::test]
async fn every_fault_bites_and_heals() {
    let playground = Playground::start("dynamodb", Hand::Strikes).await;
    for fault in faults() {
        playground.bites_and_heals(&fault).await;
    }
}

#[tokio::test]
async fn no_fault_counts_that_was_only_asked_for() {
    let playground = Playground::start("dynamodb", Hand::OnlyPretends).await;
    for fault in faults() {
        playground.is_not_taken_in(&fault).await;
    }
}

/// All that is proven in another way than for a Redis. It has nothing on disk, so a restart that
/// keeps its data cannot be.
fn faults() -> Vec<Fault> {
    let node = || named("dynamodb");
    let skew = FaultParameters {
        by_ms: Some(-60_000),
        ..FaultParameters::default()
    };
    vec![
        Fault::with(FaultKind::Skew, node(), skew),
        Fault::of_node(FaultKind::RestartEmpty, node()),
    ]
}
