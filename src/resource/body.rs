//! Reads a body with a limit and a deadline.

use super::limits::{BODY_DEADLINE, MAX_BODY_BYTES};
use super::reply::{Refusal, bad_request, refuse};
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use bounded_io::Unread;
use bytes::Bytes;
use std::time::Duration;
use tokio::time::timeout;

/// A body that is too long is still read up to this length.
const MAX_DISCARD_BYTES: usize = 1024 * 1024;

pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<Bytes, Refusal> {
    read_up_to(headers, body, MAX_BODY_BYTES).await
}

pub(super) async fn read_up_to(
    headers: &HeaderMap,
    body: Body,
    limit: usize,
) -> Result<Bytes, Refusal> {
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_DISCARD_BYTES as u64) {
        return Err(too_large(limit));
    }
    read_within(body, limit, BODY_DEADLINE).await
}

async fn read_within(body: Body, limit: usize, deadline: Duration) -> Result<Bytes, Refusal> {
    timeout(deadline, collect(body, limit))
        .await
        .unwrap_or_else(|_| {
            Err(refuse(
                StatusCode::REQUEST_TIMEOUT,
                format!("the body did not arrive within {deadline:?}: send it at once"),
            ))
        })
}

async fn collect(body: Body, limit: usize) -> Result<Bytes, Refusal> {
    let sent = bounded_io::sent(body, limit, MAX_DISCARD_BYTES).await;
    sent.map_err(|unread| match unread {
        Unread::TooLong => too_large(limit),
        Unread::BrokenOff(error) => bad_request(format!("the body broke off: {error}")),
    })
}

fn too_large(limit: usize) -> Refusal {
    refuse(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the body is too large: at most {limit} bytes are allowed"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt, stream};
    use std::io;

    #[tokio::test]
    async fn a_body_that_never_comes_is_given_up() {
        let body = Body::from_stream(stream::pending::<io::Result<Bytes>>());
        let refusal = read_within(body, MAX_BODY_BYTES, Duration::from_millis(1)).await;
        assert_eq!(refusal.unwrap_err().status, StatusCode::REQUEST_TIMEOUT);
    }

    #[tokio::test]
    async fn a_body_without_end_is_given_up() {
        let chunk = Bytes::from(vec![0; MAX_BODY_BYTES]);
        let body = Body::from_stream(stream::repeat(chunk).map(Ok::<_, io::Error>));
        let refusal = read(&HeaderMap::new(), body).await;
        assert_eq!(refusal.unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
    }

    #[tokio::test]
    async fn the_limit_itself_is_allowed() {
        let body = Body::from(vec![7; MAX_BODY_BYTES]);
        let bytes = read(&HeaderMap::new(), body).await.unwrap();
        assert_eq!(bytes.len(), MAX_BODY_BYTES);
    }
}
