//! The helpers beside nodes: roles of this program that share something with a node.

use super::process::Process;
use crate::clock::Deed;
use crate::cluster::{ClusterError, ClusterResult, Console, ConsoleLine, Helper, Shared, Stdin};
use crate::faults::probe;
use fencing_lock::Env;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, BufReader, duplex, split};
use tokio::sync::mpsc;

const PIPE_BYTES: usize = 1 << 16;

/// Starts a probe in the network of a node.
pub fn start(helper: &Helper, env: Env, process: &Arc<Process>) -> ClusterResult<Console> {
    if helper.shares != Shared::Network || helper.command != ["probe"] {
        return Err(ClusterError::NotHere {
            what: format!("start {}", helper.name),
        });
    }
    let (stdin, asked) = duplex(PIPE_BYTES);
    let (answers, stdout) = duplex(PIPE_BYTES);
    let (said, lines) = mpsc::channel(ConsoleLine::MOST_WAITING);
    tokio::spawn(process.task(async move {
        // It ends with its stdin.
        let _ended = probe::run_in(env, BufReader::new(asked), answers).await;
    }));
    tokio::spawn(async move {
        let (stdout, _unused) = split(stdout);
        let mut printed = BufReader::new(stdout).lines();
        while let Ok(Some(line)) = printed.next_line().await {
            if said.send(ConsoleLine::Out(line)).await.is_err() {
                return;
            }
        }
    });
    Ok(Console {
        stdin: Stdin(Box::pin(stdin)),
        lines,
    })
}

/// Shows or changes the clocks of a node's process; returns what the helper would print.
pub fn change_clocks(helper: &Helper, process: &Process) -> ClusterResult<String> {
    let failed = |why: &str| ClusterError::failed(format!("run {}", helper.name), why);
    if helper.shares != Shared::Processes {
        return Err(failed("it is not simulated"));
    }
    let deed = Deed::of_helper(&helper.command);
    let deed = deed.ok_or_else(|| failed("it is not simulated"))?;
    let state = process.change_clocks(&deed);
    serde_json::to_string(&state).map_err(|error| failed(&error.to_string()))
}
