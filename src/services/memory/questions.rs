use crate::clock::wall_clock_ns;
use crate::services::questions::*;
use fencing_lock::servers::{MemoryAnswer as Answer, MemoryRequest as Request, MemoryServer};

pub struct ServerInMemory;

#[async_trait]
impl Questions for ServerInMemory {
    async fn time(&self, server: &Reached) -> Proof<Option<TimeBetween>> {
        let before = wall_clock_ns();
        match ask(server, Request::Time).await? {
            Answer::Time { now } => Ok(Some((before, now.as_nanos() as i64, wall_clock_ns()))),
            other => Err(failed(server.address, other)),
        }
    }

    async fn remember(&self, server: &Reached) -> Proof<bool> {
        ask(server, Request::Remember).await.map(|_| true)
    }

    async fn remembers(&self, server: &Reached) -> Proof<Option<bool>> {
        let answer = ask(server, Request::Remembers).await?;
        Ok(Some(answer == Answer::Yes))
    }
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
