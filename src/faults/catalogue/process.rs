//! The state of a process, seen from outside.

use super::*;
use crate::cluster::{NodeState, Signal, ThreadState};
use tokio::time::Instant;

/// The time that a signal may take until every thread shows it in its state.
const PROOF_DEADLINE: Duration = Duration::from_secs(5);
/// The state of a thread cannot be awaited, only polled.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub async fn send(field: &Field, node: &Name, signal: Signal) -> Proof {
    Ok(field.cluster.signal(node, signal).await?)
}

pub async fn state(field: &Field, node: &Name) -> Proof<NodeState> {
    Ok(field.cluster.state(node).await?)
}

/// Looks at the threads until they are as they should be, and returns what was seen. A look that
/// fails is repeated as well, because engines fail on a container that ends in that very moment.
pub async fn observe(
    field: &Field,
    node: &Name,
    holds: impl Fn(&[ThreadState]) -> bool,
) -> Proof<String> {
    let give_up_at = Instant::now() + PROOF_DEADLINE;
    loop {
        let unlike = match field.cluster.threads(node).await {
            Ok(threads) if holds(&threads) => return Ok(describe(&threads)),
            // A process that has ended does not change any more.
            Ok(threads) if threads.is_empty() => return Err(UnprovenReason::ProcessEnded),
            Ok(threads) => UnprovenReason::ThreadsUnlike {
                threads: describe(&threads),
            },
            Err(error) => error.into(),
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
