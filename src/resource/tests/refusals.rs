use super::super::{ClientError, MAX_BODY_BYTES, MAX_KEY_BYTES, MAX_OWNER_BYTES};
use super::*;

#[tokio::test]
async fn malformed_writes_are_refused_and_nothing_is_applied() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    let put = |path: &str| server.raw(Method::PUT, path).body("v");
    let long_key = format!("/r/{}", "k".repeat(MAX_KEY_BYTES + 1));
    let long_owner = "o".repeat(MAX_OWNER_BYTES + 1);
    let token = "X-Fence-Token";
    let refused = [
        (put("/r/k"), "x-fence-token is missing"),
        (put("/r/k").header(token, ""), "digits only"),
        (put("/r/k").header(token, "-1"), "digits only"),
        (put("/r/k").header(token, "+5"), "digits only"),
        (put("/r/k").header(token, "9".repeat(5000)), "digits only"),
        (
            put("/r/k").header(token, "1").header(token, "2"),
            "more than once",
        ),
        (
            put("/r/k").header(token, "1").header("X-Fence-Seq", "-1"),
            "x-fence-seq",
        ),
        (
            put("/r/k").header(token, "1").header("X-Based-On", "x"),
            "x-based-on",
        ),
        (
            put("/r/k").header(token, "1").header("X-Owner", long_owner),
            "x-owner",
        ),
        (put("/r/").header(token, "1"), "the key is empty"),
        (put(&long_key).header(token, "1"), "at most 256"),
        (put("/r/a%0Ab").header(token, "1"), "control character"),
        (put("/r/%FF").header(token, "1"), "not UTF-8"),
    ];
    let count = refused.len() as u64;
    for (request, problem) in refused {
        let (status, error) = status_and_error(request).await;
        assert_eq!(status, 400, "{error}");
        assert!(error.contains(problem), "{error} should say {problem}");
    }
    assert_eq!(server.client.log().await.unwrap(), []);
    assert_eq!(server.metric("resource_bad_requests_total").await, count);
    server.stop().await;
}

#[tokio::test]
async fn a_body_over_the_limit_is_413() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    for (length, expected) in [
        (MAX_BODY_BYTES, 200),
        (MAX_BODY_BYTES + 1, 413),
        (4 * 1024 * 1024, 413),
    ] {
        let put = server.raw(Method::PUT, "/r/k").header("X-Fence-Token", "1");
        let sent = put.body(vec![b'v'; length]).send().await;
        match sent {
            Ok(response) => assert_eq!(response.status().as_u16(), expected),
            // A client that is still sending megabytes may see a closed connection first.
            Err(error) => assert!(length > 1024 * 1024, "{error}"),
        }
    }
    assert_eq!(server.client.log().await.unwrap().len(), 1);
    server.stop().await;
}

#[tokio::test]
async fn what_is_not_there_is_said_in_json() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    let cases = [
        (Method::GET, "/r/k", 404, "nothing has been written"),
        (Method::GET, "/", 404, "try /r/{key}"),
        (Method::GET, "/r/a/b", 404, "%2F"),
        (Method::DELETE, "/r/k", 405, "PUT to write"),
        (Method::POST, "/log", 405, "use GET"),
        (Method::GET, "/log?folow=true", 400, "follow=true"),
        (Method::GET, "/log?follow=yes", 400, "follow=true"),
    ];
    for (method, path, expected, problem) in cases {
        let (status, error) = status_and_error(server.raw(method, path)).await;
        assert_eq!(status, expected, "{path}: {error}");
        assert!(error.contains(problem), "{path}: {error}");
    }
    assert_eq!(server.value().await, None);
    server.stop().await;
}

#[tokio::test]
async fn the_client_tells_a_bad_request_from_an_unknown_outcome() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    let bad = [
        WriteRequest {
            token: None,
            ..attempt(0, 0, "")
        },
        WriteRequest {
            key: "..".into(),
            ..attempt(1, 0, "")
        },
        WriteRequest {
            owner: Some("two\nlines".into()),
            ..attempt(1, 0, "")
        },
    ];
    for write in bad {
        let error = server.client.put(&write).await.unwrap_err();
        assert!(
            matches!(error, ClientError::BadRequest { status: 400, .. }),
            "{error}"
        );
        assert!(!error.outcome_unknown());
    }
    let client = server.client.clone();
    server.stop().await;
    let error = client.put(&attempt(1, 0, "")).await.unwrap_err();
    assert!(error.outcome_unknown(), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
    assert!(ResourceClient::new("https://x", Duration::from_secs(1)).is_err());
    assert!(ResourceClient::new("x", Duration::from_secs(1)).is_err());
}
