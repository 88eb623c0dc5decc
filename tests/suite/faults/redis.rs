use super::playground::{Hand, Playground};
use crate::support::named;
use fencepost::model::{
    Fault, FaultKind, FaultParameters, LinkEffect, LinkFault, LinkPattern, LinkScope, Streams,
    ToxicEffect,
};

const REDIS: &str = "redis";

#[tokio::test]
async fn every_fault_bites_and_heals() {
    let playground = Playground::start("redis-durable", Hand::Strikes).await;
    for fault in faults() {
        playground.bites_and_heals(&fault).await;
    }
}

#[tokio::test]
async fn no_fault_counts_that_was_only_asked_for() {
    let playground = Playground::start("redis-durable", Hand::OnlyPretends).await;
    for fault in faults() {
        playground.is_not_taken_in(&fault).await;
    }
}

/// All that a Redis and the links to it can meet with.
fn faults() -> Vec<Fault> {
    let of_node = |kind, node| Fault::of_node(kind, named(node));
    let skew = |node, by_ms| {
        let parameters = FaultParameters {
            by_ms: Some(by_ms),
            ..FaultParameters::default()
        };
        Fault::with(FaultKind::Skew, named(node), parameters)
    };
    let drift = FaultParameters {
        ppm: Some(50_000),
        ..FaultParameters::default()
    };
    let mut faults = vec![
        of_node(FaultKind::Pause, REDIS),
        of_node(FaultKind::Freeze, REDIS),
        of_node(FaultKind::Freeze, "a"),
        of_node(FaultKind::Disconnect, REDIS),
        of_node(FaultKind::Disconnect, "a"),
        loss(FaultKind::Drop, REDIS, 100),
        loss(FaultKind::Loss, "a", 30),
        skew(REDIS, 15_000),
        skew(REDIS, -60_000),
        skew("resource", 5_000),
        Fault::with(FaultKind::Drift, named(REDIS), drift),
        of_node(FaultKind::Kill, REDIS),
        of_node(FaultKind::Restart, REDIS),
        of_node(FaultKind::Restart, "resource"),
        of_node(FaultKind::RestartEmpty, REDIS),
    ];
    // Last, because after everything else a link still has to lead through its proxy.
    faults.extend(link_faults());
    faults
}

fn link_faults() -> Vec<Fault> {
    let both = Streams::Both;
    let lost = ToxicEffect::Timeout { timeout_ms: 0 };
    let held = ToxicEffect::Bandwidth { rate_kb_per_s: 0 };
    let slow = ToxicEffect::Bandwidth { rate_kb_per_s: 20 };
    let late = ToxicEffect::Latency {
        latency_ms: 200,
        jitter_ms: 50,
    };
    let reset = ToxicEffect::ResetPeer { timeout_ms: 0 };
    let sliced = ToxicEffect::Slicer {
        average_size: 50,
        size_variation: 10,
        delay_us: 10_000,
    };
    let cut_short = ToxicEffect::LimitData { bytes: 100 };
    let groups = vec![vec!["a".to_owned()], vec!["b".to_owned(), REDIS.to_owned()]];
    vec![
        links(
            FaultKind::Partition,
            LinkScope::Between(groups),
            toxic(lost, both),
        ),
        links(
            FaultKind::Isolate,
            LinkScope::Around(named(REDIS)),
            LinkEffect::Refuse,
        ),
        links(FaultKind::Refuse, from_to("a", REDIS), LinkEffect::Refuse),
        links(FaultKind::Blackhole, from_to("a", REDIS), toxic(lost, both)),
        links(
            FaultKind::OneWay,
            from_to("a", REDIS),
            toxic(lost, Streams::Data),
        ),
        links(
            FaultKind::OneWay,
            from_to(REDIS, "a"),
            toxic(lost, Streams::Data),
        ),
        links(
            FaultKind::Stall,
            from_to("a", REDIS),
            toxic(held, Streams::Data),
        ),
        links(FaultKind::Reset, from_to("a", REDIS), toxic(reset, both)),
        links(
            FaultKind::Latency,
            from_to("a", "resource"),
            toxic(late, Streams::Data),
        ),
        links(
            FaultKind::Bandwidth,
            from_to("a", REDIS),
            toxic(slow, Streams::Data),
        ),
        links(
            FaultKind::Bandwidth,
            from_to("resource", "a"),
            toxic(slow, Streams::Data),
        ),
        links(
            FaultKind::Toxic,
            from_to("a", REDIS),
            toxic(sliced, Streams::Data),
        ),
        links(
            FaultKind::Toxic,
            from_to("a", REDIS),
            toxic(cut_short, Streams::Data),
        ),
        links(
            FaultKind::Toxic,
            from_to("a", REDIS),
            LinkEffect::Toxic {
                toxic: lost,
                streams: both,
                toxicity: 0.5,
            },
        ),
    ]
}

fn loss(kind: FaultKind, node: &str, percent: u8) -> Fault {
    let parameters = FaultParameters {
        percent: Some(percent),
        ..FaultParameters::default()
    };
    Fault::with(kind, named(node), parameters)
}

pub fn links(kind: FaultKind, scope: LinkScope, effect: LinkEffect) -> Fault {
    Fault::Links(LinkFault {
        kind,
        scope,
        effect,
    })
}

pub fn from_to(from: &str, to: &str) -> LinkScope {
    LinkScope::Matching(vec![LinkPattern {
        from: Some(from.to_owned()),
        to: Some(to.to_owned()),
    }])
}

pub fn toxic(toxic: ToxicEffect, streams: Streams) -> LinkEffect {
    LinkEffect::Toxic {
        toxic,
        streams,
        toxicity: 1.0,
    }
}
