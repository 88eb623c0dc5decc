//! Signed requests to the S3 role that no client sends.

use super::super::limits::MAX_ROW_BYTES;
use super::super::s3::{self, DEFAULT_BUCKET, DEFAULT_KEY, canonical, sha256};
use super::*;
use fencing_lock::AwsCredentials;
use fencing_lock::servers::{SignatureScope, aws_timestamp};
use reqwest::StatusCode;
use std::time::SystemTime;

async fn start(dir: &Path) -> Server {
    let config = s3::Config {
        data_dir: dir.to_owned(),
        credentials: AwsCredentials::new(DEFAULT_KEY, DEFAULT_KEY),
        bucket: DEFAULT_BUCKET.to_owned(),
        #[cfg(debug_assertions)]
        mutant: None,
    };
    Server::boot(
        |listener, stopped| async move { s3::open(config)?.serve(listener, stopped).await },
    )
    .await
}

/// Sends a request; these headers are not among the signed ones.
async fn send(
    server: &Server,
    request: (Method, &str, &str),
    headers: &[(&str, &[u8])],
    body: Vec<u8>,
) -> (StatusCode, String) {
    let (method, key, parameter) = request;
    let path = format!("/{DEFAULT_BUCKET}{key}");
    let parameters = Vec::from_iter((!parameter.is_empty()).then(|| (parameter.into(), "".into())));
    let (at, hash) = (aws_timestamp(SystemTime::now()), sha256(&body));
    let host = server.url.strip_prefix("http://").unwrap();
    let signed = [
        ("host", host.to_owned()),
        ("x-amz-content-sha256", hash.clone()),
        ("x-amz-date", at.clone()),
    ];
    let scope = SignatureScope {
        region: "us-east-1",
        service: "s3",
        at: &at,
    };
    let canonical = canonical::request(method.as_str(), &path, &parameters, &signed, &hash);
    let signature = scope.signature(DEFAULT_KEY, &canonical);
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={DEFAULT_KEY}/{}, \
         SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={signature}",
        scope.place()
    );
    let url = format!("{}?{parameter}", canonical::encode(&path, true));
    let request = server.raw(method, &url).body(body);
    let request = request.header("authorization", authorization);
    let request = signed.into_iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    let request = headers.iter().fold(request, |request, (name, value)| {
        request.header(*name, *value)
    });
    let answer = request.send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

async fn log(server: &Server) -> String {
    let log = reqwest::get(format!("{}/-/log", server.url)).await.unwrap();
    log.text().await.unwrap()
}

/// A row that is too long would be acknowledged and never be read back.
#[tokio::test]
async fn no_row_is_longer_than_can_be_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let longest = "\u{1}".repeat(1024);
    let (put, delete) = (Method::PUT, Method::DELETE);
    let tags = format!("\"{}\"", ",".repeat(1022));
    let tags: &[(&str, &[u8])] = &[("if-match", tags.as_bytes())];
    let meta = "\"".repeat(1020);
    let meta: &[(&str, &[u8])] = &[
        ("x-amz-meta-a", meta.as_bytes()),
        ("x-amz-meta-b", &meta.as_bytes()[..1000]),
    ];
    let body = vec![1; super::super::MAX_BODY_BYTES];
    let key = format!("/{longest}");
    let (made, why) = send(&server, (put.clone(), &key, ""), meta, body.clone()).await;
    assert_eq!(made, StatusCode::OK, "{why}");
    let both = [meta, tags].concat();
    let (compared, _) = send(&server, (put.clone(), &key, ""), &both, body.clone()).await;
    assert_eq!(compared, StatusCode::PRECONDITION_FAILED);
    let longer = ",".repeat(1025);
    let longer: &[(&str, &[u8])] = &[("if-match", longer.as_bytes())];
    let too_long = send(&server, (put, &key, ""), longer, body).await;
    assert_eq!(too_long.0, StatusCode::BAD_REQUEST, "{}", too_long.1);
    let too_long = send(&server, (delete, &format!("{key}x"), ""), &[], Vec::new()).await;
    assert!(too_long.1.contains("KeyTooLongError"), "{}", too_long.1);
    let quotes = "\"".repeat(200_000);
    let many = format!("<Delete><Object><Key>{quotes}</Key></Object></Delete>");
    let (_, answer) = send(&server, (Method::POST, "", "delete"), &[], many.into()).await;
    assert!(answer.contains("KeyTooLongError"), "{answer:.200}");
    let rows = log(&server).await;
    let longest = rows.lines().map(str::len).max().unwrap();
    assert!(longest <= MAX_ROW_BYTES, "{longest}");
    server.stop().await;
    let again = start(dir.path()).await;
    assert_eq!(log(&again).await, rows);
}

/// Whoever sends a condition that is not understood must not write without one.
#[tokio::test]
async fn a_condition_that_cannot_be_read_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path()).await;
    let put = (Method::PUT, "/key", "");
    assert_eq!(
        send(&server, put.clone(), &[], vec![1]).await.0,
        StatusCode::OK
    );
    let twice: &[(&str, &[u8])] = &[("if-match", b"*"), ("if-match", b"\"other\"")];
    for headers in [&[("if-match", &b"\"\xff\""[..])][..], twice] {
        let (status, text) = send(&server, put.clone(), headers, vec![2]).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
        let delete = (Method::DELETE, "/key", "");
        let (status, text) = send(&server, delete, headers, Vec::new()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}");
    }
    for element in ["<VersionId>1</VersionId>", "<ETag>other</ETag>"] {
        let body = format!("<Delete><Object><Key>key</Key>{element}</Object></Delete>");
        let (status, text) = send(&server, (Method::POST, "", "delete"), &[], body.into()).await;
        assert_eq!(status, StatusCode::NOT_IMPLEMENTED, "{text}");
    }
    // The bucket, and the one put.
    assert_eq!(log(&server).await.lines().count(), 2);
}
