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
    is_promoted_once(&playground, "redis-replica").await;
}

#[tokio::test]
async fn a_replica_of_a_postgres_becomes_the_primary() {
    let playground = Playground::start("postgres-replica", Hand::Strikes).await;
    is_promoted_once(&playground, "postgres-replica").await;
}

#[tokio::test]
async fn a_promotion_that_was_only_asked_for_does_not_count() {
    for replica in ["redis-replica", "postgres-replica"] {
        let playground = Playground::start(replica, Hand::OnlyPretends).await;
        playground.is_not_taken_in(&promote(replica)).await;
    }
}

async fn is_promoted_once(playground: &Playground, replica: &str) {
    playground.bites_and_heals(&promote(replica)).await;
    let (nemesis, _) = playground.nemesis();
    let again = nemesis.inject(&promote(replica), None, None).await;
    assert!(again.unwrap_err().text.contains("a primary already"));
}

fn promote(replica: &str) -> Fault {
    Fault::of_node(FaultKind::Promote, named(replica))
}
