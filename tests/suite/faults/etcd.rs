use super::playground::{Hand, Playground};
use super::redis::{from_to, links, toxic};
use crate::support::named;
use fencepost::model::{
    ClockName, Fault, FaultKind, FaultParameters, LinkEffect, LinkScope, Streams, ToxicEffect,
};

#[tokio::test]
async fn faults_of_members_and_of_links_between_them_bite_and_heal() {
    let playground = Playground::start("etcd", Hand::Strikes).await;
    for fault in faults() {
        playground.bites_and_heals(&fault).await;
    }
}

#[tokio::test]
async fn none_of_them_counts_that_was_only_asked_for() {
    let playground = Playground::start("etcd", Hand::OnlyPretends).await;
    for fault in faults() {
        playground.is_not_taken_in(&fault).await;
    }
}

fn faults() -> Vec<Fault> {
    let lost = ToxicEffect::Timeout { timeout_ms: 0 };
    let group = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let split = vec![group(&["a", "etcd-1"]), group(&["b", "etcd-2", "etcd-3"])];
    vec![
        links(
            FaultKind::Isolate,
            LinkScope::Around(named("leader")),
            toxic(lost, Streams::Both),
        ),
        links(
            FaultKind::Partition,
            LinkScope::Between(split),
            LinkEffect::Refuse,
        ),
        links(
            FaultKind::OneWay,
            from_to("etcd-1", "etcd-2"),
            toxic(lost, Streams::Data),
        ),
        skew("etcd-2", ClockName::Realtime),
        skew("leader", ClockName::Monotonic),
        Fault::of_node(FaultKind::Restart, named("etcd-3")),
    ]
}

fn skew(node: &str, clock: ClockName) -> Fault {
    let parameters = FaultParameters {
        clock: Some(clock),
        by_ms: Some(15_000),
        ..FaultParameters::default()
    };
    Fault::with(FaultKind::Skew, named(node), parameters)
}
