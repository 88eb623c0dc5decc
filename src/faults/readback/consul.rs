use super::super::Proof;
use super::{failed, http};
use reqwest::{Method, StatusCode};
use std::net::SocketAddr;

/// A key that no lock uses.
const MEMORY: &str = "fencepost/memory";

pub async fn remember(address: SocketAddr) -> Proof {
    match ask(Method::PUT, address).await? {
        StatusCode::OK => Ok(()),
        status => Err(failed(address, status)),
    }
}

pub async fn remembers(address: SocketAddr) -> Proof<bool> {
    match ask(Method::GET, address).await? {
        StatusCode::OK => Ok(true),
        StatusCode::NOT_FOUND => Ok(false),
        status => Err(failed(address, status)),
    }
}

async fn ask(method: Method, address: SocketAddr) -> Proof<StatusCode> {
    let url = format!("http://{address}/v1/kv/{MEMORY}");
    let asked = async { http()?.request(method, url).send().await };
    let answer = asked.await.map_err(|error| failed(address, error))?;
    Ok(answer.status())
}
