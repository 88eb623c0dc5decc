use super::playground::{Hand, Playground};
use super::redis::{from_to, links, toxic};
use crate::support::named;
use fencepost::model::{Fault, FaultKind, Streams, ToxicEffect};

#[tokio::test]
async fn a_replica_behind_a_cut_link_becomes_the_primary() {
    let playground = Playground::start("redis-replica", Hand::Strikes).await;
    let held = ToxicEffect::Bandwidth { rate_kb_per_s: 0 };
    let stall = links(
        FaultKind::Stall,
        from_to("redis", "redis-replica"),
        toxic(held, Streams::Data),
    );
    playground.bites_and_heals(&stall).await;
    playground.bites_and_heals(&promote()).await;
    let (nemesis, _) = playground.nemesis();
    let again = nemesis.inject(&promote(), None, None).await;
    assert!(again.unwrap_err().text.contains("a primary already"));
}

#[tokio::test]
async fn a_promotion_that_was_only_asked_for_does_not_count() {
    let playground = Playground::start("redis-replica", Hand::OnlyPretends).await;
    playground.is_not_taken_in(&promote()).await;
}

fn promote() -> Fault {
    Fault::of_node(FaultKind::Promote, named("redis-replica"))
}
