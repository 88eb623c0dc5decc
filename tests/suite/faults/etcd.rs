use super::playground::{Hand, Playground};
use super::redis::{from_to, links, toxic};
use crate::support::named;
use fencepost::model::{ClockName, Fault, FaultKind, LinkEffect, LinkScope, Streams, ToxicEffect};

#[tokio::test]
async fn faults_of_members_and_of_links_between_them_bite_and_heal() {
    let Some(playground) = Playground::start("etcd", Hand::Strikes).await else {
        return;
    };
    for fault in faults() {
        playground.bites_and_heals(&fault).await;
    }
}

#[tokio::test]
async fn none_of_them_counts_that_was_only_asked_for() {
    let Some(playground) = Playground::start("etcd", Hand::OnlyPretends).await else {
        return;
    };
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
        Fault::Skew {
            node: named("etcd-2"),
            clock: ClockName::Realtime,
            by_ms: 15_000,
        },
        Fault::Skew {
            node: named("leader"),
            clock: ClockName::Monotonic,
            by_ms: 15_000,
        },
        Fault::Restart {
            node: named("etcd-3"),
        },
    ]
}
