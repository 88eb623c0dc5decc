//! The whole resource in one process: a real server, a real file, a real client.

mod durability;
mod failing_disk;
mod hostile;
mod limits;
mod log_routes;
mod loop_disk;
#[cfg(debug_assertions)]
mod mutants;
mod refusals;
mod s3;
mod writes;

use super::log::Log;
use super::state::State;
use super::{Config, ResourceClient, ResourceError, WriteAnswer, WriteRequest};
use crate::model::{Fence, FencingToken};
use bytes::Bytes;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use std::future::Future;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

struct Server {
    url: String,
    client: ResourceClient,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ResourceError>>,
}

impl Server {
    async fn start(fence: Fence, dir: &Path) -> Server {
        Server::configured(Config::new(fence, dir)).await
    }

    /// Starts a server in its own temporary folder.
    async fn fresh(fence: Fence) -> (TempDir, Server) {
        let dir = tempfile::tempdir().unwrap();
        let server = Server::start(fence, dir.path()).await;
        (dir, server)
    }

    async fn configured(config: Config) -> Server {
        Server::boot(|listener, stopped| async move {
            super::open(config)?.serve(listener, stopped).await
        })
        .await
    }

    async fn over(log: Log) -> Server {
        Server::of(log, State::new(Fence::On)).await
    }

    async fn of(log: Log, state: State) -> Server {
        Server::boot(|listener, stopped| super::Opened { log, state }.serve(listener, stopped))
            .await
    }

    async fn boot<F>(
        serve: impl FnOnce(TcpListener, std::pin::Pin<Box<dyn Future<Output = ()> + Send>>) -> F,
    ) -> Server
    where
        F: Future<Output = Result<(), ResourceError>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let stopped = Box::pin(async { drop(stopped.await) });
        Server {
            client: ResourceClient::new(&url, Duration::from_secs(20)).unwrap(),
            url,
            stop,
            task: tokio::spawn(serve(listener, stopped)),
        }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }

    fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    async fn put(&self, token: u64, seq: u64, body: &'static str) -> WriteAnswer {
        self.client.put(&attempt(token, seq, body)).await.unwrap()
    }

    async fn value(&self) -> Option<super::Stored> {
        self.client.get("k").await.unwrap()
    }

    /// Builds a request that the client would not send.
    fn raw(&self, method: Method, path: &str) -> RequestBuilder {
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        http.request(method, format!("{}{path}", self.url))
    }

    async fn metric(&self, name: &str) -> u64 {
        let response = self.raw(Method::GET, "/metrics").send().await.unwrap();
        let text = response.text().await.unwrap();
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name} ")));
        let line = line.unwrap_or_else(|| panic!("no {name} in {text}"));
        line[name.len() + 1..].parse().unwrap()
    }
}

fn attempt(token: u64, seq: u64, body: &'static str) -> WriteRequest {
    WriteRequest {
        key: "k".into(),
        token: Some(FencingToken(token)),
        token_seq: seq,
        owner: None,
        based_on: None,
        body: Bytes::from_static(body.as_bytes()),
    }
}

async fn status_and_text(request: RequestBuilder) -> (u16, String) {
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}

/// Returns status and message of an error, which must be JSON.
async fn status_and_error(request: RequestBuilder) -> (u16, String) {
    let (status, text) = status_and_text(request).await;
    let body: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"));
    (status, body["error"].as_str().unwrap().to_owned())
}
