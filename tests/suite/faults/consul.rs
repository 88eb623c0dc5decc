use super::playground::{Hand, Playground};
use crate::support::named;
use fencepost::model::{Fault, FaultKind};

#[tokio::test]
async fn every_fault_bites_and_heals() {
    let playground = Playground::start("consul", Hand::Strikes).await;
    for fault in faults() {
        playground.bites_and_heals(&fault).await;
    }
}

#[tokio::test]
async fn no_fault_counts_that_was_only_asked_for() {
    let playground = Playground::start("consul", Hand::OnlyPretends).await;
    for fault in faults() {
        playground.is_not_taken_in(&fault).await;
    }
}

/// All that is proven in another way than for a Redis.
fn faults() -> Vec<Fault> {
    [FaultKind::Restart, FaultKind::RestartEmpty]
        .map(|kind| Fault::of_node(kind, named("consul")))
        .into()
}
