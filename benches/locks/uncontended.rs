//! One Redis and nobody else who wants the lock: what a pair costs beyond the
//! two commands that it cannot do without.

use crate::blocks::{Candidate, print, take_turns};
use crate::peers::{BareRedis, Ours, Peer, Rslock};
use crate::targets::{Bound, Targets};
use crate::{Arguments, Trouble, servers};
use fencepost::model::WaitPolicy;
use fencepost::services::Backend;

const ROUNDS: usize = 40;

pub async fn measure(arguments: &Arguments) -> Result<Targets, Trouble> {
    let redis = tokio::task::block_in_place(servers::redis);
    let nodes = vec![redis.address.clone()];
    let floor = BareRedis {
        nodes: nodes.clone(),
    };
    let mut candidates = vec![candidate(&floor).await?];
    for wait in WaitPolicy::ALL {
        candidates.push(candidate(&Ours::waiting(Backend::Redis, wait, &nodes)).await?);
    }
    let ours = 1..candidates.len();
    candidates.push(candidate(&Rslock { nodes, retry: None }).await?);
    take_turns(&mut candidates, arguments.rounds(ROUNDS), arguments.pairs).await?;
    print("Uncontended acquire + release, one Redis", &candidates);
    let mut targets = Targets::default();
    for one in &candidates[ours] {
        let what = format!("uncontended, one Redis: {} beside the floor", one.name);
        targets.expect(what, one.ratio_to(&candidates[0]), Bound::AtMost(1.05));
    }
    Ok(targets)
}

/// Each on a key of its own.
pub async fn candidate(peer: &dyn Peer) -> Result<Candidate, Trouble> {
    let key = format!("account-{}", fastrand::u32(..));
    peer.prepare(&key).await?;
    Ok(Candidate::new(peer.name(), peer.client(&key).await?))
}
