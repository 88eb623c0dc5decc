//! Faults of a process, and how their effect is seen.

use super::Nemesis;
use crate::cluster::{Signal, ThreadState};
use std::time::Duration;
use tokio::time::Instant;

/// How long a signal may take to be seen in the state of every thread.
const PROOF_DEADLINE: Duration = Duration::from_secs(5);
/// The state of a thread cannot be awaited, only looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

pub async fn stop(nemesis: &Nemesis, target: &str) -> Result<String, String> {
    send(nemesis, target, Signal::Stop).await?;
    observe(nemesis, target, |threads| {
        !threads.is_empty() && threads.iter().all(|thread| thread.is_stopped())
    })
    .await
}

/// A target that has ended since is not standing still either.
pub async fn resume(nemesis: &Nemesis, target: &str) -> Result<String, String> {
    if let Err(reason) = send(nemesis, target, Signal::Continue).await
        && !has_ended(nemesis, target).await
    {
        return Err(reason);
    }
    observe(nemesis, target, |threads| {
        !threads.iter().any(|thread| thread.is_stopped())
    })
    .await
}

async fn send(nemesis: &Nemesis, target: &str, signal: Signal) -> Result<(), String> {
    #[cfg(debug_assertions)]
    if nemesis.sends_no_signal {
        return Ok(());
    }
    let sent = nemesis.cluster.signal(target, signal).await;
    sent.map_err(|error| error.to_string())
}

async fn has_ended(nemesis: &Nemesis, target: &str) -> bool {
    let ended = observe(nemesis, target, |threads| threads.is_empty());
    ended.await.is_ok()
}

/// Looks at the threads until they are as they should be; returns what was
/// seen. A look that fails is repeated as well: engines stumble over a
/// container that ends in that very moment.
async fn observe(
    nemesis: &Nemesis,
    target: &str,
    holds: impl Fn(&[ThreadState]) -> bool,
) -> Result<String, String> {
    let give_up_at = Instant::now() + PROOF_DEADLINE;
    loop {
        let unlike = match nemesis.cluster.threads(target).await {
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
    format!("{} thread(s) in state {}", threads.len(), letters.join(" "))
}
