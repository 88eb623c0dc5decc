//! How the state of a process is seen from outside.

use super::super::field::Field;
use crate::cluster::{NodeState, Signal, ThreadState};
use crate::model::Name;
use std::time::Duration;
use tokio::time::Instant;

/// How long a signal may take to be seen in the state of every thread.
const PROOF_DEADLINE: Duration = Duration::from_secs(5);
/// The state of a thread cannot be awaited, only looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub async fn send(field: &Field, node: &Name, signal: Signal) -> Result<(), String> {
    let sent = field.cluster.signal(node, signal).await;
    sent.map_err(|error| error.to_string())
}

pub async fn state(field: &Field, node: &Name) -> Result<NodeState, String> {
    let state = field.cluster.state(node).await;
    state.map_err(|error| error.to_string())
}

/// Looks at the threads until they are as they should be; returns what was
/// seen. A look that fails is repeated as well: engines stumble over a
/// container that ends in that very moment.
pub async fn observe(
    field: &Field,
    node: &Name,
    holds: impl Fn(&[ThreadState]) -> bool,
) -> Result<String, String> {
    let give_up_at = Instant::now() + PROOF_DEADLINE;
    loop {
        let unlike = match field.cluster.threads(node).await {
            Ok(threads) if holds(&threads) => return Ok(describe(&threads)),
            // What has ended will not change any more.
            Ok(threads) if threads.is_empty() => return Err(describe(&threads)),
            Ok(threads) => format!("it was seen with {}", describe(&threads)),
            Err(error) => error.to_string(),
        };
        if Instant::now() >= give_up_at {
            return Err(unlike);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

fn describe(threads: &[ThreadState]) -> String {
    if threads.is_empty() {
        return "its process ended".to_owned();
    }
    let letters: Vec<String> = threads.iter().map(|thread| thread.0.to_string()).collect();
    match (
        &letters[..],
        letters.iter().all(|letter| *letter == letters[0]),
    ) {
        ([only], _) => format!("its only thread in state {only}"),
        ([first, ..], true) => format!("all {} threads in state {first}", letters.len()),
        _ => format!("{} threads in states {}", letters.len(), letters.join(" ")),
    }
}
