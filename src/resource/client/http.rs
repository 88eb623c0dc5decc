//! The client of the HTTP resource.

use super::{ClientError, LONGEST_CONNECT, Stored, WriteAnswer, bad_request, no_answer};
use crate::model::{FencingToken, without_password};
use crate::resource::headers::{BASED_ON, OWNER, SEQ, TOKEN};
use crate::resource::limits::{MAX_ANSWER_BYTES, MAX_LOG_BYTES, MAX_ROW_BYTES, key_problem};
use crate::resource::metrics::STALE_REJECTIONS;
use crate::resource::state::WriteRequest;
use futures_util::{Stream, TryStreamExt, stream};
use reqwest::header::CONTENT_LENGTH;
use reqwest::{Body, Client, RequestBuilder, Response, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::error::Error;
use std::io;
use std::pin::pin;
use std::time::Duration;
use tokio_util::io::StreamReader;

#[derive(Clone, Debug)]
pub struct HttpClient {
    http: Client,
    base: Url,
    timeout: Duration,
}

/// Where the log is.
type LogPath = &'static [&'static str];

impl HttpClient {
    /// Makes a client. `timeout` bounds each request; for a log it bounds each wait for more.
    pub fn new(base_url: &str, timeout: Duration) -> Result<HttpClient, ClientError> {
        let address = |reason: String| ClientError::Address {
            url: without_password(base_url),
            reason,
        };
        let base = Url::parse(base_url).map_err(|error| address(error.to_string()))?;
        if base.scheme() != "http" {
            return Err(address("it must start with http://".into()));
        }
        let http = Client::builder()
            // The resource is in our own network; a proxy would add its own failures.
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(timeout.min(LONGEST_CONNECT))
            .redirect(reqwest::redirect::Policy::none())
            // One attempt is one row in the log: the caller decides whether to repeat it.
            .retry(reqwest::retry::never())
            .build()
            .map_err(|error| address(chain(&error)))?;
        Ok(HttpClient {
            http,
            base,
            timeout,
        })
    }

    pub async fn put(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        self.put_body(write, write.body.clone().into()).await
    }

    /// Sends a write; `body` is that of the write, however it is sent.
    pub async fn put_body(
        &self,
        write: &WriteRequest,
        body: Body,
    ) -> Result<WriteAnswer, ClientError> {
        #[derive(Deserialize)]
        struct Accepted {
            position: u64,
        }
        #[derive(Deserialize)]
        struct Rejected {
            seen: FencingToken,
            got: FencingToken,
        }

        let name = format!("PUT /r/{}", write.key);
        let url = self.key_url(&name, &write.key)?;
        let mut request = self.http.put(url).body(body);
        request = request.header(CONTENT_LENGTH, write.body.len());
        if let Some(token) = write.token {
            request = request.header(TOKEN, token.0);
        }
        if write.token_seq > 0 {
            request = request.header(SEQ, write.token_seq);
        }
        if let Some(owner) = &write.owner {
            request = request.header(OWNER, owner);
        }
        if let Some(based_on) = write.based_on {
            request = request.header(BASED_ON, based_on);
        }
        let response = self.send(&name, request.timeout(self.timeout)).await?;
        if response.status() == StatusCode::CONFLICT {
            let Rejected { seen, got } = parse(&name, response).await?;
            return Ok(WriteAnswer::Rejected { seen, got });
        }
        let Accepted { position } = parse(&name, successful(&name, response).await?).await?;
        Ok(WriteAnswer::Accepted { position })
    }

    /// Returns the stored value; None if nothing has been written yet.
    pub async fn get(&self, key: &str) -> Result<Option<Stored>, ClientError> {
        let name = format!("GET /r/{key}");
        let url = self.key_url(&name, key)?;
        let request = self.http.get(url).timeout(self.timeout);
        let response = self.send(&name, request).await?;
        if response.status() != StatusCode::NOT_FOUND {
            return parse(&name, successful(&name, response).await?).await;
        }
        match serde_json::from_slice(&body(&name, response).await?) {
            Ok(ErrorBody { .. }) => Ok(None),
            Err(_) => Err(no_answer(&name, format!("404: {FROM_SOMEBODY_ELSE}"))),
        }
    }

    /// Returns every row that is durable now.
    pub async fn log<R: DeserializeOwned + Send + 'static>(
        &self,
        path: LogPath,
    ) -> Result<Vec<R>, ClientError> {
        let name = "GET /log";
        let mut rows = pin!(self.rows(name, path, false).await?);
        let mut all = Vec::new();
        let mut length = 0;
        while let Some((row, bytes)) = tokio::time::timeout(self.timeout, rows.try_next())
            .await
            .map_err(|_| no_answer(name, "it stopped in the middle"))??
        {
            length += bytes;
            if length > MAX_LOG_BYTES {
                let reason = format!("it has more than {MAX_LOG_BYTES} bytes");
                return Err(no_answer(name, reason));
            }
            all.push(row);
        }
        Ok(all)
    }

    /// Returns every row that is durable now, and every later one as soon as it is durable. The
    /// stream ends when the resource stops; it has no deadline, because silence is normal.
    pub async fn follow<R: DeserializeOwned + Send + 'static>(
        &self,
        path: LogPath,
    ) -> Result<impl Stream<Item = Result<R, ClientError>> + Send + use<R>, ClientError> {
        let rows = self.rows("GET /log?follow=true", path, true).await?;
        Ok(rows.map_ok(|(row, _)| row))
    }

    /// Returns how many writes were answered with 409 since the resource started.
    pub async fn stale_rejections(&self) -> Result<u64, ClientError> {
        let name = "GET /metrics";
        let request = self.http.get(self.url(&["metrics"])).timeout(self.timeout);
        let response = successful(name, self.send(name, request).await?).await?;
        let text = text(name, response).await?;
        text.lines()
            .find_map(|line| line.strip_prefix(STALE_REJECTIONS)?.trim().parse().ok())
            .ok_or_else(|| no_answer(name, format!("it has no {STALE_REJECTIONS}")))
    }

    /// Returns the rows, each with the length of its line.
    async fn rows<R: DeserializeOwned + Send + 'static>(
        &self,
        name: &'static str,
        path: LogPath,
        follow: bool,
    ) -> Result<impl Stream<Item = Result<(R, usize), ClientError>> + Send + use<R>, ClientError>
    {
        let mut url = self.url(path);
        url.set_query(follow.then_some("follow=true"));
        // A timeout on the request would also end the stream.
        let answered = async {
            let response = self.send(name, self.http.get(url)).await?;
            successful(name, response).await
        };
        let response = tokio::time::timeout(self.timeout, answered)
            .await
            .map_err(|_| no_answer(name, "it did not come in time"))??;
        let bytes = response.bytes_stream();
        let reader = StreamReader::new(bytes.map_err(io::Error::other));
        Ok(stream::try_unfold(reader, move |mut reader| async move {
            // The additional byte is for the indentation.
            let line = bounded_io::line(&mut reader, MAX_ROW_BYTES + 1).await;
            let Some(line) = line.map_err(|error| no_answer(name, chain(&error)))? else {
                return Ok(None);
            };
            let row = serde_json::from_slice(&line).map_err(|error| {
                let line = String::from_utf8_lossy(&line);
                no_answer(
                    name,
                    format!("this is no row ({error}): {}", line.trim_end()),
                )
            })?;
            Ok(Some(((row, line.len()), reader)))
        }))
    }

    fn key_url(&self, request: &str, key: &str) -> Result<Url, ClientError> {
        match key_problem(key) {
            None => Ok(self.url(&["r", key])),
            Some(message) => Err(bad_request(request, message)),
        }
    }

    fn url(&self, segments: &[&str]) -> Url {
        let mut url = self.base.clone();
        // Only addresses such as mailto: have no path, and `new` refuses them.
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        url
    }

    async fn send(&self, name: &str, request: RequestBuilder) -> Result<Response, ClientError> {
        request.send().await.map_err(|error| {
            // A request whose header cannot be built was never sent.
            if error.is_builder() {
                return bad_request(name, chain(&error));
            }
            no_answer(name, cause(&error))
        })
    }
}

const FROM_SOMEBODY_ELSE: &str = "this is not a resource of fencepost; check the address";
const SHOWN_CHARS: usize = 200;

/// Returns the message of an answer that is not in the words of the resource: its first line. An
/// answer without a body comes from the limits of HTTP, also at the resource.
fn foreign(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    match text.trim().lines().next() {
        None => "without a body".to_owned(),
        Some(line) => {
            let line: String = line.chars().take(SHOWN_CHARS).collect();
            format!("{line} ({FROM_SOMEBODY_ELSE})")
        }
    }
}

/// What the resource answers if something is wrong.
#[derive(Deserialize)]
struct ErrorBody {
    error: String,
}

async fn successful(name: &str, response: Response) -> Result<Response, ClientError> {
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let bytes = body(name, response).await?;
    let message = match serde_json::from_slice(&bytes) {
        Ok(ErrorBody { error }) => error,
        Err(_) => foreign(&bytes),
    };
    if status.is_client_error() || status == StatusCode::INSUFFICIENT_STORAGE {
        return Err(ClientError::BadRequest {
            request: name.to_owned(),
            status: status.as_u16(),
            message,
        });
    }
    Err(no_answer(name, format!("{status}: {message}")))
}

async fn parse<T: DeserializeOwned>(name: &str, response: Response) -> Result<T, ClientError> {
    let bytes = body(name, response).await?;
    serde_json::from_slice(&bytes).map_err(|error| no_answer(name, error.to_string()))
}

async fn text(name: &str, response: Response) -> Result<String, ClientError> {
    let bytes = body(name, response).await?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn body(name: &str, response: Response) -> Result<Vec<u8>, ClientError> {
    let body = bounded_io::body(response, MAX_ANSWER_BYTES).await;
    body.map_err(|error| no_answer(name, chain(&error)))
}

/// Returns why a request has no answer, in the words of whoever saw it first.
fn cause(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let first = causes.last().map(ToString::to_string);
    let first = first.unwrap_or_else(|| error.to_string());
    match error.is_connect() {
        true => format!("no connection: {first}"),
        false => first,
    }
}

/// Returns the error with its causes: reqwest names them only in the sources of its errors.
pub fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
