//! The lock servers in memory of a simulated cluster.

use super::process::Process;
use super::programs::{Record, serve};
use crate::clock::raw_monotonic_ns;
use crate::cluster::NodeSpec;
use crate::model::{FencingToken, LockEvent, LockEventKind};
use memory_lock_server::{EventKind, LockServer};
use std::sync::Arc;

pub fn start(server: &LockServer, node: &NodeSpec, process: &Arc<Process>) {
    let clock = process.clone();
    server.start(move || clock.wall_clock());
    let own = server.clone();
    tokio::spawn(process.task(async move { match own.expire_actively().await {} }));
    let server = server.clone();
    serve(node, process, move |end| {
        let server = server.clone();
        async move { drop(server.serve(end).await) }
    });
}

/// Reports what happens to locks here, as an observer would.
pub fn observe(server: &LockServer, node: &str, record: Record) {
    let node = node.to_owned();
    server.watch(move |event| {
        record(LockEvent {
            at_ns: raw_monotonic_ns(),
            node: node.clone(),
            key: event.key,
            kind: match event.kind {
                EventKind::Granted => LockEventKind::Granted,
                EventKind::Renewed => LockEventKind::Renewed,
                EventKind::Released => LockEventKind::Released,
                EventKind::Expired => LockEventKind::Expired,
            },
            owner: Some(event.owner),
            token: Some(FencingToken(event.token)),
        });
    });
}
