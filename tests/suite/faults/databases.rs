use super::playground::{Hand, Playground};
use crate::support::named;
use fencepost::model::{Fault, FaultKind, FaultParameters};

const DATABASES: [&str; 2] = ["postgres", "mariadb"];

#[tokio::test]
async fn every_fault_bites_and_heals() {
    for database in DATABASES {
        let playground = Playground::start(database, Hand::Strikes).await;
        for fault in faults(database) {
            playground.bites_and_heals(&fault).await;
        }
    }
}

#[tokio::test]
async fn no_fault_counts_that_was_only_asked_for() {
    for database in DATABASES {
        let playground = Playground::start(database, Hand::OnlyPretends).await;
        for fault in faults(database) {
            playground.is_not_taken_in(&fault).await;
        }
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
