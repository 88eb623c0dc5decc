//! Does things to the clocks of a node's process: from here where we may and can
//! reach it, else from a helper container in its pid namespace.

use super::names::clockmaker_of;
use crate::clock::{self, ClockState, Deed, SkewError};
use crate::cluster::{Cluster, Helper, OWN_IMAGE, Shared};
use crate::model::Name;

/// Returns how the clocks differ afterwards.
pub async fn order(cluster: &dyn Cluster, node: &Name, deed: Deed) -> Result<ClockState, String> {
    let state = cluster.state(node).await;
    let state = state.map_err(|error| error.to_string())?;
    if !state.running {
        return Err("its process has ended".to_owned());
    }
    match state.local_pid {
        Some(pid) => {
            let done = tokio::task::spawn_blocking(move || from_here(pid, &deed)).await;
            let done = done.map_err(|error| error.to_string())?;
            done.map_err(|error| error.to_string())
        }
        None => from_beside(cluster, node, &deed).await,
    }
}

fn from_here(pid: i32, deed: &Deed) -> Result<ClockState, SkewError> {
    clock::can_skew(pid)?;
    deed.do_to(pid)
}

async fn from_beside(
    cluster: &dyn Cluster,
    node: &Name,
    deed: &Deed,
) -> Result<ClockState, String> {
    let helper = Helper {
        name: clockmaker_of(node),
        image: OWN_IMAGE.to_owned(),
        command: deed.beside(),
        beside: node.to_owned(),
        shares: Shared::Processes,
    };
    let said = cluster.run_helper(&helper).await;
    Deed::answer(&said.map_err(|error| error.to_string())?)
}
