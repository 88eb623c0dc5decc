//! The client of workers and the orchestrator for the resource, whatever kind it is of.

mod http;
mod played;
mod postgres;
mod s3;
mod slow;

use super::state::WriteRequest;
use crate::model::{FencingToken, LogRow, ResourceKind, RowValue, WriteStyle};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::HttpClient;
pub use http::chain;
pub use played::{PlayedClient, PlayedResource};
use postgres::PostgresClient;
use s3::S3Client;
pub use s3::open_bucket;
use serde::{Deserialize, Serialize};
pub use slow::halves;
use std::time::Duration;
use tokio::sync::oneshot;

#[derive(Clone, Debug)]
pub enum ResourceClient {
    Http(HttpClient),
    Postgres(PostgresClient),
    S3(S3Client),
    /// The resource of a simulation, in this process.
    Played(PlayedClient),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteAnswer {
    Accepted {
        position: u64,
    },
    Rejected {
        seen: FencingToken,
        got: FencingToken,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    pub value: RowValue,
    pub max_fence: Option<FencingToken>,
    pub position: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "{url:?} is not an address of a resource: {reason}; http://127.0.0.1:8080, postgres://127.0.0.1:5432 or s3://127.0.0.1:9000/bucket would be one"
    )]
    Address { url: String, reason: String },
    /// The request is wrong and nothing was applied; sent again it fails again.
    #[error("the resource refused {request} ({status}): {message}")]
    BadRequest {
        request: String,
        status: u16,
        message: String,
    },
    /// The server of a table does not carry the statement out; nothing was applied.
    #[error("the resource refused {request}: {message}")]
    Refused { request: String, message: String },
    /// It is unknown whether the request took effect.
    #[error("no usable answer to {request}: {reason}; its outcome is unknown")]
    NoAnswer { request: String, reason: String },
}

impl ClientError {
    /// Returns whether the request may have taken effect despite the error.
    pub fn outcome_unknown(&self) -> bool {
        matches!(self, ClientError::NoAnswer { .. })
    }
}

/// The log of the HTTP resource.
const LOG: &[&str] = &["log"];
/// The longest wait for a connection, which is shorter than the wait for an answer may be.
const LONGEST_CONNECT: Duration = Duration::from_secs(5);

impl ResourceClient {
    /// Makes a client. `timeout` bounds each request; for a log it bounds each wait for more.
    pub fn new(url: &str, timeout: Duration) -> Result<ResourceClient, ClientError> {
        Ok(match ResourceKind::of_url(url) {
            ResourceKind::Http => ResourceClient::Http(HttpClient::new(url, timeout)?),
            ResourceKind::Postgres => ResourceClient::Postgres(PostgresClient::new(url, timeout)?),
            ResourceKind::S3 => ResourceClient::S3(S3Client::new(url, timeout)?),
        })
    }

    /// Makes a client that writes in this way; None if the resource cannot be written to so.
    pub fn with_style(self, style: WriteStyle) -> Option<ResourceClient> {
        let (kind, styled) = match self {
            ResourceClient::Postgres(client) => {
                let styled = client.with_style(style);
                (ResourceKind::Postgres, ResourceClient::Postgres(styled))
            }
            ResourceClient::S3(client) => {
                let styled = client.with_style(style);
                (ResourceKind::S3, ResourceClient::S3(styled))
            }
            ResourceClient::Http(_) | ResourceClient::Played(_) => (ResourceKind::Http, self),
        };
        style.suits(kind).then_some(styled)
    }

    /// Makes the tables of a store that has none yet, and checks those that are there.
    pub async fn prepare(&self) -> Result<(), ClientError> {
        match self {
            ResourceClient::Http(_) | ResourceClient::S3(_) | ResourceClient::Played(_) => Ok(()),
            ResourceClient::Postgres(client) => client.prepare().await,
        }
    }

    pub async fn put(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        match self {
            ResourceClient::Http(client) => client.put(write).await,
            ResourceClient::Postgres(client) => client.put(write).await,
            ResourceClient::S3(client) => client.put(write).await,
            ResourceClient::Played(client) => client.put(write).await,
        }
    }

    /// Begins a write, says so, and ends it when it is told to: one half of the body before that
    /// and one after, or a transaction that has read the row before it writes.
    pub async fn put_slowly(
        &self,
        write: &WriteRequest,
        begun: oneshot::Sender<()>,
        go: oneshot::Receiver<()>,
    ) -> Result<WriteAnswer, ClientError> {
        match self {
            ResourceClient::Http(client) => {
                let body = halves(write.body.clone(), begun, go);
                client.put_body(write, body).await
            }
            ResourceClient::Postgres(client) => client.put_slowly(write, begun, go).await,
            // The certificate of an S3 sends its own requests, and a simulation has no bodies.
            ResourceClient::S3(client) => client.put(write).await,
            ResourceClient::Played(client) => client.put(write).await,
        }
    }

    /// Returns the stored value; None if nothing has been written yet.
    pub async fn get(&self, key: &str) -> Result<Option<Stored>, ClientError> {
        match self {
            ResourceClient::Http(client) => client.get(key).await,
            ResourceClient::Postgres(client) => client.get(key).await,
            ResourceClient::S3(client) => client.get(key).await,
            ResourceClient::Played(client) => client.get(key).await,
        }
    }

    /// Reads the value for a write that follows it, by a holder of this token.
    pub async fn begin(
        &self,
        key: &str,
        token: FencingToken,
    ) -> Result<Option<Stored>, ClientError> {
        match self {
            ResourceClient::Postgres(client) => client.begin(key, token).await,
            ResourceClient::S3(client) => client.begin(key, token).await,
            ResourceClient::Http(_) | ResourceClient::Played(_) => self.get(key).await,
        }
    }

    /// Forgets a read that no write followed.
    pub fn leave(&self) {
        match self {
            ResourceClient::Postgres(client) => client.leave(),
            ResourceClient::S3(client) => client.leave(),
            ResourceClient::Http(_) | ResourceClient::Played(_) => {}
        }
    }

    /// Returns every row that is durable now.
    pub async fn log(&self) -> Result<Vec<LogRow>, ClientError> {
        match self {
            ResourceClient::Http(client) => client.log(LOG).await,
            ResourceClient::Postgres(client) => client.log().await,
            ResourceClient::S3(client) => client.log().await,
            ResourceClient::Played(client) => client.log(),
        }
    }

    /// Returns every row that is durable now, and every later one as soon as it is durable. The
    /// stream ends when the resource stops; it has no deadline, because silence is normal.
    pub async fn follow(&self) -> Result<BoxStream<'static, RowResult>, ClientError> {
        Ok(match self {
            ResourceClient::Http(client) => client.follow(LOG).await?.boxed(),
            ResourceClient::Postgres(client) => client.follow().await?.boxed(),
            ResourceClient::S3(client) => client.follow().await?.boxed(),
            ResourceClient::Played(client) => client.follow()?.boxed(),
        })
    }

    /// Returns how many writes were refused since the resource started, where it counts them
    /// beside its log.
    pub async fn stale_rejections(&self) -> Result<Option<u64>, ClientError> {
        match self {
            ResourceClient::Http(client) => client.stale_rejections().await.map(Some),
            ResourceClient::Postgres(_) | ResourceClient::S3(_) => Ok(None),
            ResourceClient::Played(client) => client.stale_rejections().map(Some),
        }
    }

    /// Returns whether the positions of the log grow with gaps: a sequence of a database loses
    /// numbers in a crash, and not every row of an S3 is a decision about a token.
    pub fn leaves_gaps(&self) -> bool {
        matches!(self, ResourceClient::Postgres(_) | ResourceClient::S3(_))
    }
}

pub type RowResult = Result<LogRow, ClientError>;

fn no_answer(request: &str, reason: impl Into<String>) -> ClientError {
    ClientError::NoAnswer {
        request: request.to_owned(),
        reason: reason.into(),
    }
}

/// Returns what is certain about a write of which an earlier try was not answered: if the last one was
/// refused, the earlier one may have been applied before.
fn after_no_answer(
    request: &str,
    answer: Result<WriteAnswer, ClientError>,
) -> Result<WriteAnswer, ClientError> {
    let refusal = match answer {
        Ok(WriteAnswer::Accepted { .. }) => return answer,
        Ok(WriteAnswer::Rejected { seen, got }) => format!("{seen} had been seen and {got} came"),
        Err(error) => error.to_string(),
    };
    let reason =
        format!("an earlier try was not answered, and the last one was refused: {refusal}");
    Err(no_answer(request, reason))
}

/// The refusal of a request that breaks a limit of every resource.
fn bad_request(request: &str, message: String) -> ClientError {
    ClientError::BadRequest {
        request: request.to_owned(),
        status: 400,
        message,
    }
}
