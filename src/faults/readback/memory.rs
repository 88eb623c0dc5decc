use super::super::Proof;
use super::super::field::Reached;
use super::failed;
use fencing_lock::servers::{MemoryAnswer as Answer, MemoryRequest as Request, MemoryServer};

/// Returns its realtime clock, in nanoseconds, between two readings of ours.
pub async fn time(server: &Reached, ours: impl Fn() -> i64) -> Proof<(i64, i64, i64)> {
    let before = ours();
    match ask(server, Request::Time).await? {
        Answer::Time { now } => Ok((before, now.as_nanos() as i64, ours())),
        other => Err(failed(server.address, other)),
    }
}

pub async fn remember(server: &Reached) -> Proof {
    ask(server, Request::Remember).await.map(|_| ())
}

pub async fn remembers(server: &Reached) -> Proof<bool> {
    Ok(ask(server, Request::Remembers).await? == Answer::Yes)
}

async fn ask(server: &Reached, request: Request) -> Proof<Answer> {
    let asked = async {
        let memory = MemoryServer::new(&server.address.to_string(), server.env.clone())?;
        memory.ask(&request).await
    };
    asked
        .await
        .map_err(|problem| failed(server.address, problem))
}
