use crate::services::questions::*;
use reqwest::{Method, StatusCode};

pub struct ConsulServer;

/// A key that no lock uses.
const MEMORY: &str = "fencepost/memory";

#[async_trait]
impl Questions for ConsulServer {
    async fn remember(&self, server: &Reached) -> Proof<bool> {
        match ask(Method::PUT, server.address).await? {
            StatusCode::OK => Ok(true),
            status => Err(failed(server.address, status)),
        }
    }

    async fn remembers(&self, server: &Reached) -> Proof<Option<bool>> {
        match ask(Method::GET, server.address).await? {
            StatusCode::OK => Ok(Some(true)),
            StatusCode::NOT_FOUND => Ok(Some(false)),
            status => Err(failed(server.address, status)),
        }
    }
}

async fn ask(method: Method, address: SocketAddr) -> Proof<StatusCode> {
    let url = format!("http://{address}/v1/kv/{MEMORY}");
    let asked = async { http()?.request(method, url).send().await };
    let answer = asked.await.map_err(|error| failed(address, error))?;
    Ok(answer.status())
}
