//! Reads and changes the clocks of a node's processes: directly where this process can reach it
//! and is allowed to, else from a helper container in the node's pid namespace.

use super::*;
use crate::clock::{self, ClockState, Deed, SkewError};
use crate::cluster::OWN_IMAGE;

pub fn clockmaker_of(node: &Name) -> Name {
    node.behind("clock")
}

/// Returns how the clocks differ afterwards.
pub async fn order(cluster: &dyn Cluster, node: &Name, deed: Deed) -> Proof<ClockState> {
    let state = cluster.state(node).await?;
    if !state.running {
        return Err(UnprovenReason::ProcessEnded);
    }
    match state.local_pid {
        Some(pid) => {
            let done = tokio::task::spawn_blocking(move || from_here(pid, &deed)).await;
            done.map_err(failed)?.map_err(failed)
        }
        None => from_beside(cluster, node, &deed).await,
    }
}

fn failed(error: impl ToString) -> UnprovenReason {
    let error = error.to_string();
    UnprovenReason::Clock { error }
}

fn from_here(pid: i32, deed: &Deed) -> Result<ClockState, SkewError> {
    clock::can_skew(pid)?;
    deed.do_to_family(pid)
}

async fn from_beside(cluster: &dyn Cluster, node: &Name, deed: &Deed) -> Proof<ClockState> {
    let helper = Helper {
        name: clockmaker_of(node),
        image: OWN_IMAGE.to_owned(),
        command: deed.beside(),
        beside: node.to_owned(),
        shares: Shared::Processes,
    };
    Deed::answer(&cluster.run_helper(&helper).await?).map_err(failed)
}
