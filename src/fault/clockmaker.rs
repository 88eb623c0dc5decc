//! Shifts the clocks of a node's process: from here where we may and can reach
//! it, else from a helper container in its pid namespace.

use super::names::clockmaker_of;
use crate::clock::{self, ClockState, SkewError};
use crate::cluster::{Cluster, Helper, OWN_IMAGE, Shared};
use crate::model::{ClockName, Name};

/// What is to be done to the clocks.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    Check,
    SetMs(ClockName, i64),
    DriftPpm(ClockName, i64),
    /// Every clock as it was.
    Undo,
}

/// Returns how the clocks differ afterwards.
pub async fn order(cluster: &dyn Cluster, node: &Name, order: Order) -> Result<ClockState, String> {
    let state = cluster.state(node).await;
    let state = state.map_err(|error| error.to_string())?;
    if !state.running {
        return Err("its process has ended".to_owned());
    }
    match state.local_pid {
        Some(pid) => {
            let done = tokio::task::spawn_blocking(move || from_here(pid, order)).await;
            let done = done.map_err(|error| error.to_string())?;
            done.map_err(|error| error.to_string())
        }
        None => from_beside(cluster, node, order).await,
    }
}

fn from_here(pid: i32, order: Order) -> Result<ClockState, SkewError> {
    match order {
        Order::Check => clock::can_skew(pid).and_then(|()| clock::show(pid)),
        Order::SetMs(name, ms) => clock::set(pid, name, ms * 1_000_000),
        Order::DriftPpm(name, ppm) => clock::drift(pid, name, ppm),
        Order::Undo => clock::undo(pid),
    }
}

/// The node's own process is process 1 there.
async fn from_beside(
    cluster: &dyn Cluster,
    node: &Name,
    order: Order,
) -> Result<ClockState, String> {
    let words = match order {
        Order::Check => vec!["show".to_owned()],
        Order::SetMs(name, ms) => vec!["set".to_owned(), format!("--{name}={ms:+}ms")],
        Order::DriftPpm(name, ppm) => vec!["drift".to_owned(), format!("--{name}={ppm:+}ppm")],
        Order::Undo => vec!["undo".to_owned()],
    };
    let mut command = vec!["clock".to_owned()];
    command.extend(words);
    command.extend(["--json", "1"].map(str::to_owned));
    let helper = Helper {
        name: clockmaker_of(node),
        image: OWN_IMAGE.to_owned(),
        command,
        beside: node.to_owned(),
        shares: Shared::Processes,
    };
    let said = cluster.run_helper(&helper).await;
    let said = said.map_err(|error| error.to_string())?;
    let last = said.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| format!("{last:?} is no state of clocks: {error}"))
}
