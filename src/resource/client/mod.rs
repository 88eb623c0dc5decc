//! The client of workers and the orchestrator for the resource, whatever kind it is of.

mod http;
mod postgres;

use super::state::WriteRequest;
use crate::model::{FencingToken, LogRow, ResourceKind, RowValue};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::HttpClient;
use postgres::PostgresClient;
use serde::Deserialize;
use std::time::Duration;

#[derive(Clone, Debug)]
pub enum ResourceClient {
    Http(HttpClient),
    Postgres(PostgresClient),
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

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Stored {
    pub value: RowValue,
    pub max_fence: Option<FencingToken>,
    pub position: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(
        "{url:?} is not an address of a resource: {reason}; http://127.0.0.1:8080 or postgres://127.0.0.1:5432 would be one"
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

/// The longest wait for a connection, which is shorter than the wait for an answer may be.
const LONGEST_CONNECT: Duration = Duration::from_secs(5);

impl ResourceClient {
    /// Makes a client. `timeout` bounds each request; for a log it bounds each wait for more.
    pub fn new(url: &str, timeout: Duration) -> Result<ResourceClient, ClientError> {
        Ok(match ResourceKind::of_url(url) {
            ResourceKind::Http => ResourceClient::Http(HttpClient::new(url, timeout)?),
            ResourceKind::Postgres => ResourceClient::Postgres(PostgresClient::new(url, timeout)?),
        })
    }

    /// Makes the tables of a store that has none yet, and checks those that are there.
    pub async fn prepare(&self) -> Result<(), ClientError> {
        match self {
            ResourceClient::Http(_) => Ok(()),
            ResourceClient::Postgres(client) => client.prepare().await,
        }
    }

    pub async fn put(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        match self {
            ResourceClient::Http(client) => client.put(write).await,
            ResourceClient::Postgres(client) => client.put(write).await,
        }
    }

    /// Returns the stored value; None if nothing has been written yet.
    pub async fn get(&self, key: &str) -> Result<Option<Stored>, ClientError> {
        match self {
            ResourceClient::Http(client) => client.get(key).await,
            ResourceClient::Postgres(client) => client.get(key).await,
        }
    }

    /// Returns every row that is durable now.
    pub async fn log(&self) -> Result<Vec<LogRow>, ClientError> {
        match self {
            ResourceClient::Http(client) => client.log().await,
            ResourceClient::Postgres(client) => client.log().await,
        }
    }

    /// Returns every row that is durable now, and every later one as soon as it is durable. The
    /// stream ends when the resource stops; it has no deadline, because silence is normal.
    pub async fn follow(&self) -> Result<BoxStream<'static, RowResult>, ClientError> {
        Ok(match self {
            ResourceClient::Http(client) => client.follow().await?.boxed(),
            ResourceClient::Postgres(client) => client.follow().await?.boxed(),
        })
    }

    /// Returns how many writes were refused since the resource started, where it counts them
    /// beside its log.
    pub async fn stale_rejections(&self) -> Result<Option<u64>, ClientError> {
        match self {
            ResourceClient::Http(client) => client.stale_rejections().await.map(Some),
            ResourceClient::Postgres(_) => Ok(None),
        }
    }

    /// Returns whether the positions of the log grow with gaps: a sequence of a database loses
    /// numbers in a crash.
    pub fn leaves_gaps(&self) -> bool {
        matches!(self, ResourceClient::Postgres(_))
    }
}

pub type RowResult = Result<LogRow, ClientError>;

fn no_answer(request: &str, reason: impl Into<String>) -> ClientError {
    ClientError::NoAnswer {
        request: request.to_owned(),
        reason: reason.into(),
    }
}

/// The refusal of a request that breaks a limit of every resource.
fn bad_request(request: &str, message: String) -> ClientError {
    ClientError::BadRequest {
        request: request.to_owned(),
        status: 400,
        message,
    }
}
