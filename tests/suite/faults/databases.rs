use super::playground::{Hand, Playground};
use crate::support::named;
use fencepost::model::{Fault, FaultKind, FaultParameters};

#[tokio::test]
async fn every_fault_of_a_postgres_bites_and_heals() {
    all_bite_and_heal("postgres").await;
}

#[tokio::test]
async fn every_fault_of_a_mariadb_bites_and_heals() {
    all_bite_and_heal("mariadb").await;
}

async fn all_bite_and_heal(database: &str) {
    let playground = Playground::start(database, Hand::Strikes).await;
    for fault in faults(database) {
        playground.bites_and_heals(&fault).await;
    }
}

#[tokio::test]
async fn no_fault_of_a_postgres_counts_that_was_only_asked_for() {
    none_is_taken_in("postgres").await;
}

#[tokio::test]
async fn no_fault_of_a_mariadb_counts_that_was_only_asked_for() {
    none_is_taken_in("mariadb").await;
}

async fn none_is_taken_in(database: &str) {
    let playground = Playground::start(database, Hand::OnlyPretends).await;
    for fault in faults(database) {
        playground.is_not_taken_in(&fault).await;
    }
}

/// All that is proven in another way than for a Redis.
fn faults(database: &str) -> Vec<Fault> {
    let of_node = |kind| Fault::of_node(kind, named(database));
    let skew = FaultParameters {
        by_ms: Some(-60_000),
        ..FaultParameters::default()
    };
    vec![
        Fault::with(FaultKind::Skew, named(database), skew),
        of_node(FaultKind::Restart),
        of_node(FaultKind::RestartEmpty),
    ]
}
