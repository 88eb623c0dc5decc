//! The HTTP interface of the resource: its routes, and the answers of each.

use super::body;
use super::commit::{Committer, Ledger, Unanswered};
use super::headers::{TOKEN, WriteHeaders};
use super::limits::{MAX_HELD_BYTES, key_problem};
use super::log_stream;
use super::metrics::{self, Metrics};
use super::reply::{Refusal, bad_request, json, refuse};
use super::state::{self, Answer, Stored, Undecided, WriteRequest};
use crate::model::{FencingToken, RowValue};
use axum::Router;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::middleware::map_response_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

pub(super) struct App {
    pub committer: Committer<state::State>,
    pub metrics: Arc<Metrics>,
    pub log_path: PathBuf,
}

type AppState = State<Arc<App>>;

pub(super) fn router(app: App) -> Router {
    let app = Arc::new(app);
    Router::new()
        .route("/r/{key}", get(read).put(write))
        .route("/r/", any(empty_key))
        .route("/log", get(log))
        .route("/metrics", get(show_metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .fallback(unknown_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(map_response_with_state(app.clone(), count_bad_requests))
        .with_state(app)
}

async fn write(
    State(app): AppState,
    key: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refusal> {
    #[derive(Serialize)]
    struct Accepted<'a> {
        key: &'a str,
        position: u64,
        max_fence: Option<FencingToken>,
    }
    #[derive(Serialize)]
    struct Rejected {
        error: &'static str,
        seen: FencingToken,
        got: FencingToken,
        // These explain the refusal only if the tokens are equal.
        #[serde(skip_serializing_if = "Option::is_none")]
        seen_seq: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        got_seq: Option<u64>,
    }

    let key = checked(key)?;
    let fence = WriteHeaders::parse(&headers)?;
    let _under_way = app.committer.announce();
    let _place = app.committer.place().await?;
    let request = WriteRequest {
        key: key.clone(),
        token: fence.token,
        token_seq: fence.token_seq,
        owner: fence.owner,
        based_on: fence.based_on,
        body: body::read(&headers, body).await?,
    };
    match app.committer.write(request).await? {
        Ok(Answer::Accepted {
            position,
            max_fence,
        }) => {
            let accepted = Accepted {
                key: &key,
                position,
                max_fence,
            };
            Ok(json(StatusCode::OK, &accepted))
        }
        Ok(Answer::Rejected { seen, got }) => {
            let same_token = seen.token == got.token;
            // The owner of the latest write would have been accepted.
            let error = match same_token && got.seq > seen.seq {
                true => "fencing token of another owner",
                false => "stale fencing token",
            };
            let rejected = Rejected {
                error,
                seen: seen.token,
                got: got.token,
                seen_seq: same_token.then_some(seen.seq),
                got_seq: same_token.then_some(got.seq),
            };
            Ok(json(StatusCode::CONFLICT, &rejected))
        }
        Err(Undecided::TokenMissing) => Err(bad_request(format!(
            "{TOKEN} is missing: the fence is on, so send the token that the lock granted"
        ))),
        Err(Undecided::Full) => Err(refuse(
            StatusCode::INSUFFICIENT_STORAGE,
            format!(
                "the resource holds {MAX_HELD_BYTES} bytes of keys and values and takes no more: \
                 nothing was written; use fewer keys or shorter values"
            ),
        )),
    }
}

async fn read(
    State(app): AppState,
    key: Result<Path<String>, PathRejection>,
) -> Result<Response, Refusal> {
    #[derive(Serialize)]
    struct Found<'a> {
        key: &'a str,
        value: RowValue,
        max_fence: Option<FencingToken>,
        position: u64,
    }

    let key = checked(key)?;
    let _under_way = app.committer.announce();
    let Some(stored) = app.committer.get(key.clone()).await? else {
        let message = format!("nothing has been written to the key {key:?}");
        return Err(refuse(StatusCode::NOT_FOUND, message));
    };
    let Stored {
        value,
        max_fence,
        position,
    } = stored;
    let found = Found {
        key: &key,
        value,
        max_fence,
        position,
    };
    Ok(json(StatusCode::OK, &found))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LogQuery {
    #[serde(default)]
    follow: bool,
}

async fn log(
    State(app): AppState,
    query: Result<Query<LogQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    log_of(&app.committer, &app.log_path, query).await
}

pub(super) async fn log_of<L: Ledger>(
    committer: &Committer<L>,
    log_path: &std::path::Path,
    query: Result<Query<LogQuery>, QueryRejection>,
) -> Result<Response, Refusal> {
    let Query(query) = query.map_err(|_| {
        bad_request("the only option of /log is follow=true or follow=false".to_string())
    })?;
    let unreadable = |error: io::Error| {
        let message = format!("cannot read {}: {error}", log_path.display());
        refuse(StatusCode::INTERNAL_SERVER_ERROR, message)
    };
    let durable = committer.durable();
    let jsonl = (header::CONTENT_TYPE, "application/jsonl".to_string());
    if query.follow {
        let body = log_stream::follow(log_path, durable)
            .await
            .map_err(unreadable)?;
        return Ok(([jsonl], body).into_response());
    }
    #[cfg(debug_assertions)]
    committer.log_was_read();
    let bytes = durable.borrow().bytes;
    let body = log_stream::snapshot(log_path, bytes)
        .await
        .map_err(unreadable)?;
    // With the length announced, a log that broke off cannot be mistaken for a whole one.
    let length = (header::CONTENT_LENGTH, bytes.to_string());
    Ok(([jsonl, length], body).into_response())
}

async fn show_metrics(State(app): AppState) -> Result<Response, Refusal> {
    let text = app.metrics.encode().map_err(|_| {
        let message = "the metrics cannot be written as text: report it as a bug";
        refuse(StatusCode::INTERNAL_SERVER_ERROR, message)
    })?;
    Ok(([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response())
}

async fn empty_key() -> Refusal {
    bad_request(key_problem("").unwrap_or_default())
}

async fn unknown_route(uri: Uri) -> Refusal {
    let message = format!(
        "there is nothing at {}: try /r/{{key}}, /log, /metrics or /healthz \
         (a slash inside a key is written as %2F)",
        uri.path()
    );
    refuse(StatusCode::NOT_FOUND, message)
}

async fn wrong_method(method: Method, uri: Uri) -> Refusal {
    let right = if uri.path().starts_with("/r/") {
        "GET to read and PUT to write"
    } else {
        "GET"
    };
    let message = format!("{method} is not possible on {}: use {right}", uri.path());
    refuse(StatusCode::METHOD_NOT_ALLOWED, message)
}

async fn count_bad_requests(State(app): AppState, response: Response) -> Response {
    let bad = [
        StatusCode::BAD_REQUEST,
        StatusCode::REQUEST_TIMEOUT,
        StatusCode::PAYLOAD_TOO_LARGE,
    ];
    if bad.contains(&response.status()) {
        app.metrics.count_bad_request();
    }
    response
}

fn checked(key: Result<Path<String>, PathRejection>) -> Result<String, Refusal> {
    let Path(key) =
        key.map_err(|_| bad_request("the key is not UTF-8 once its %XX are decoded"))?;
    match key_problem(&key) {
        Some(problem) => Err(bad_request(problem)),
        None => Ok(key),
    }
}

impl From<Unanswered> for Refusal {
    fn from(unanswered: Unanswered) -> Refusal {
        let message = match unanswered {
            Unanswered::Gone => "the resource is stopping or its disk failed: outcome unknown",
            Unanswered::TooSlow => "the disk is too slow: outcome unknown",
            Unanswered::NoPlace => "too many writes are under way: nothing was written",
        };
        refuse(StatusCode::SERVICE_UNAVAILABLE, message)
    }
}
