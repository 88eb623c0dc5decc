use super::DynamoDbSettings;
use crate::patience::Patience;
use crate::task::Task;
use crate::{Env, LockProblem};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::time::Duration;
use tokio::time::timeout;

/// HTTP/1.1 connections to one server. Each has one request at a time; those that the
/// server keeps open are used again.
pub(super) struct Http {
    host: String,
    port: u16,
    pub(super) env: Env,
    connect_timeout: Duration,
    response_timeout: Duration,
    pub(super) requests: Counter,
    idle: Mutex<Vec<Connection>>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    patience: Patience,
    _driver: Task,
}

/// An item has at most 400 kB, and a page of a stream at most 1 MB.
const MAX_ANSWER_BYTES: usize = 4 * 1024 * 1024;
const MAX_IDLE: usize = 32;

impl Http {
    pub(super) fn new(host: String, port: u16, settings: &DynamoDbSettings, env: Env) -> Http {
        Http {
            host,
            port,
            env,
            connect_timeout: settings.connect_timeout,
            response_timeout: settings.response_timeout,
            requests: Counter::default(),
            idle: Mutex::default(),
        }
    }

    pub(super) async fn send(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), LockProblem> {
        let idle = self.usable();
        let mut connection = match idle {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        self.requests.inc();
        let sender = &mut connection.sender;
        let answer = connection.patience.bound(async {
            let response = sender.send_request(request).await?;
            read(response).await
        });
        let Some(answer) = answer.await else {
            let limit_ms = connection.patience.limit().as_millis();
            return Err(LockProblem::NoAnswer(format!("not within {limit_ms} ms")));
        };
        let answer = answer.map_err(problem_of)?;
        let mut idle = self.idle.lock();
        // Whoever does not answer with JSON is not asked again on the same connection.
        let is_json = answer.1.starts_with(b"{");
        if is_json && !connection.sender.is_closed() && idle.len() < MAX_IDLE {
            idle.push(connection);
        }
        Ok(answer)
    }

    fn usable(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        idle.retain(|connection| connection.sender.is_ready());
        idle.pop()
    }

    async fn connect(&self) -> Result<Connection, LockProblem> {
        let unreachable = |words: String| LockProblem::Unreachable(words);
        let connecting = async {
            let stream = self.env.dial(&self.host, self.port).await;
            let stream = stream.map_err(|error| unreachable(error.to_string()))?;
            let made = http1::handshake(TokioIo::new(stream)).await;
            let (mut sender, driver) = made.map_err(|error| unreachable(error.to_string()))?;
            let driver = self.env.spawn(async move {
                // Whoever waits for an answer learns of an error.
                let _ended = driver.await;
            });
            let ready = sender.ready().await;
            ready.map_err(|error| unreachable(error.to_string()))?;
            Ok(Connection {
                sender,
                patience: Patience::new(&self.env, self.response_timeout),
                _driver: driver,
            })
        };
        let connected = timeout(self.connect_timeout, connecting).await;
        connected.unwrap_or_else(|_| Err(unreachable("connecting took too long".to_owned())))
    }
}

type ReadError = Box<dyn std::error::Error + Send + Sync>;

async fn read(response: Response<Incoming>) -> Result<(StatusCode, Bytes), ReadError> {
    let status = response.status();
    let body = Limited::new(response.into_body(), MAX_ANSWER_BYTES);
    Ok((status, body.collect().await?.to_bytes()))
}

/// An answer that is no HTTP, or too long, comes from something else than DynamoDB. Every
/// other error is the end of the connection.
fn problem_of(error: ReadError) -> LockProblem {
    match error.downcast_ref::<hyper::Error>() {
        Some(hyper) if !hyper.is_parse() => LockProblem::NoAnswer(error.to_string()),
        _ => LockProblem::BadAnswer(error.to_string()),
    }
}
