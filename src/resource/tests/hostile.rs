//! A client that talks to something that is not a resource.

use super::*;
use axum::Router;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

/// Answers every request with this head, and then with this chunk forever.
async fn endless(head: &'static str, chunk: &'static [u8]) -> ResourceClient {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    sent = stream.write_all(chunk).await;
                }
            });
        }
    });
    ResourceClient::new(&url, Duration::from_secs(60)).unwrap()
}

const CHUNK: &[u8] = &[b'x'; 0x4000];

#[tokio::test]
async fn an_answer_without_end_is_an_error_whose_outcome_is_unknown() {
    for status in ["200 OK", "409 Conflict", "400 Bad Request", "500 Oh"] {
        let head: &'static str = format!("HTTP/1.1 {status}\r\n\r\n").leak();
        let client = endless(head, CHUNK).await;
        let errors = [
            client.put(&attempt(1, 0, "v")).await.unwrap_err(),
            client.get("k").await.unwrap_err(),
            client.stale_rejections().await.unwrap_err(),
            client.log().await.unwrap_err(),
        ];
        for error in errors {
            assert!(error.outcome_unknown(), "{error}");
            assert!(error.to_string().contains("more than"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_resource_that_is_full_has_certainly_not_written() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let full = Router::new().fallback(|| async {
        let body = r#"{"error":"the resource is full"}"#;
        (axum::http::StatusCode::INSUFFICIENT_STORAGE, body)
    });
    let stopping = CancellationToken::new();
    let _stop = stopping.clone().drop_guard();
    tokio::spawn(bounded_io::serve::serve(listener, full, stopping));
    let client = ResourceClient::new(&url, Duration::from_secs(60)).unwrap();
    let error = client.put(&attempt(1, 0, "v")).await.unwrap_err();
    assert!(!error.outcome_unknown(), "{error}");
    assert!(
        error.to_string().contains("the resource is full"),
        "{error}"
    );
}
