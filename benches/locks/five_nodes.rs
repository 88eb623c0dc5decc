//! Five independent Redis nodes: what a quorum costs beyond the same two
//! commands on all of them at once, and what it costs when one node is gone.

use crate::blocks::{Candidate, print, take_turns};
use crate::peers::{BareRedis, Ours, Peer, Rslock};
use crate::targets::{Bound, Targets};
use crate::uncontended::candidate;
use crate::{Arguments, Trouble, servers};
use fencepost::services::Backend;
use servers::Server;
use tokio::task::block_in_place;

const ROUNDS: usize = 40;
const ROUNDS_WITH_A_NODE_DOWN: usize = 10;

pub async fn measure(arguments: &Arguments) -> Result<Targets, Trouble> {
    let servers = block_in_place(servers::five_redis);
    let nodes = servers::addresses(&servers);
    let floor = BareRedis {
        nodes: nodes.clone(),
    };
    let mut candidates = [
        candidate(&floor).await?,
        candidate(&Ours::new(Backend::Redlock, &nodes)).await?,
        candidate(&Rslock { nodes, retry: None }).await?,
    ];
    take_turns(&mut candidates, arguments.rounds(ROUNDS), arguments.pairs).await?;
    print("Uncontended acquire + release, five nodes", &candidates);
    let [floor, ours, rslock] = &candidates;
    let mut targets = Targets::default();
    targets.expect(
        "uncontended, five nodes: beside the floor".to_owned(),
        ours.ratio_to(floor),
        Bound::AtMost(1.05),
    );
    targets.expect(
        "uncontended, five nodes: beside rslock".to_owned(),
        ours.ratio_to(rslock),
        Bound::AtMost(1.0),
    );
    Ok(targets)
}

#[derive(Clone, Copy, Debug)]
enum Node {
    Up,
    Stopped,
    Frozen,
}

/// Nodes that had every write on disk would mostly measure the disk. So one
/// that is started again has forgotten its counter; the other four have not.
pub async fn measure_with_a_node_down(arguments: &Arguments) -> Result<Targets, Trouble> {
    let servers = block_in_place(servers::five_redis);
    let nodes = servers::addresses(&servers);
    let ours = Ours::new(Backend::Redlock, &nodes);
    let rslock = Rslock { nodes, retry: None };
    let peers: [&dyn Peer; 2] = [&ours, &rslock];
    let mut candidates = Vec::new();
    for peer in peers {
        for (node, name) in [
            (Node::Up, "all up"),
            (Node::Stopped, "one stopped"),
            (Node::Frozen, "one frozen"),
        ] {
            let mut one = candidate(peer).await?;
            one.name = format!("{}, {name}", one.name);
            candidates.push((node, one));
        }
    }
    for round in 0..arguments.rounds(ROUNDS_WITH_A_NODE_DOWN) {
        let server = &servers[round % servers.len()];
        for (node, one) in &mut candidates {
            with_node(server, *node, one, arguments.pairs).await?;
        }
    }
    let candidates: Vec<Candidate> = candidates.into_iter().map(|(_, one)| one).collect();
    print(
        "Five nodes of which one is down (floor: all up)",
        &candidates,
    );
    let mut targets = Targets::default();
    for down in &candidates[1..3] {
        let what = format!("{}: beside all up", down.name);
        targets.expect(what, down.ratio_to(&candidates[0]), Bound::AtMost(1.1));
    }
    Ok(targets)
}

async fn with_node(
    server: &Server,
    node: Node,
    one: &mut Candidate,
    pairs: usize,
) -> Result<(), Trouble> {
    block_in_place(|| match node {
        Node::Up => {}
        Node::Stopped => server.stop(),
        Node::Frozen => server.freeze(),
    });
    let measured = one.block(pairs).await;
    block_in_place(|| match node {
        Node::Up => {}
        Node::Stopped => server.start(),
        Node::Frozen => server.thaw(),
    });
    measured
}
