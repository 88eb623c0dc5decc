//! The format of answers, byte by byte as the original's clients know them.

use super::*;
use crate::ToxicProblem;
use crate::toxic::WireToxic;
use axum::extract::{FromRequest, Request};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use bounded_io::Unread;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub type Reply = Result<Response, Refusal>;

pub fn json(status: StatusCode, body: &impl Serialize) -> Reply {
    let body = serde_json::to_vec(body).map_err(Refusal::internal)?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((status, kind, body).into_response())
}

/// Returns a line of text, as Go's `http.Error` sends it.
pub fn text(status: StatusCode, line: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (status, headers, format!("{line}\n")).into_response()
}

pub fn timed_out() -> Response {
    let page = "<html><head><title>Timeout</title></head><body><h1>Timeout</h1></body></html>";
    (StatusCode::SERVICE_UNAVAILABLE, Html(page)).into_response()
}

/// The body of a request. One that is too long is refused in JSON, like everything else.
pub struct Sent(pub Bytes);

const MAX_BODY_BYTES: usize = 2 * 1024 * 1024;
/// A body that is too long is still read up to here.
const MAX_DISCARD_BYTES: usize = 16 * 1024 * 1024;

impl<S: Send + Sync> FromRequest<S> for Sent {
    type Rejection = Refusal;

    async fn from_request(request: Request, _: &S) -> Result<Sent, Refusal> {
        let sent = bounded_io::sent(request.into_body(), MAX_BODY_BYTES, MAX_DISCARD_BYTES).await;
        sent.map(Sent).map_err(|unread| match unread {
            Unread::TooLong => Refusal {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                ..Refusal::bad_body(format!("it has more than {MAX_BODY_BYTES} bytes"))
            },
            Unread::BrokenOff(error) => Refusal::bad_body(error),
        })
    }
}

pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    go_json::read(first_value(body)?).map_err(Refusal::bad_body)
}

pub fn parse_all<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, Refusal> {
    let values: Option<Vec<Value>> = first_value(body)?;
    let all = values.unwrap_or_default().into_iter().map(go_json::read);
    all.collect::<Result<_, _>>().map_err(Refusal::bad_body)
}

/// Parses a toxic in two steps, because each problem of a toxic has its own words.
pub fn parse_toxic(body: &[u8]) -> Result<Toxic, Refusal> {
    let wire: WireToxic = parse(body)?;
    wire.try_into()
        .map_err(|problem: ToxicProblem| problem.into())
}

/// Parses the first value. Like the original, it ignores everything after it.
fn first_value<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    if body.trim_ascii().is_empty() {
        return Err(Refusal::bad_body("EOF"));
    }
    T::deserialize(&mut serde_json::Deserializer::from_slice(body)).map_err(Refusal::bad_body)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let body = serde_json::json!({ "error": self.message, "status": self.status.as_u16() });
        text(self.status, &body.to_string())
    }
}
