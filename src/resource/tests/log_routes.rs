use super::*;
use crate::model::RowOutcome;
use futures_util::{StreamExt, TryStreamExt};
use std::pin::pin;

#[tokio::test]
async fn the_log_is_the_file_as_it_stands() {
    let (dir, server) = Server::fresh(Fence::On).await;
    server.put(2, 0, "a").await;
    server.put(1, 0, "b").await;
    let response = server.raw(Method::GET, "/log").send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/jsonl");
    let text = response.text().await.unwrap();
    let file = std::fs::read_to_string(dir.path().join(super::super::storage::FILE_NAME)).unwrap();
    assert_eq!(text, file);
    assert_eq!(text.lines().count(), 2);
    let rows = server.client.log().await.unwrap();
    assert_eq!(rows[1].outcome, RowOutcome::Rejected);
    assert_eq!(
        (rows[1].seen, &rows[1].value),
        (Some(FencingToken(2)), &None)
    );
    server.stop().await;
}

#[tokio::test]
async fn a_long_log_comes_in_whole() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    for token in 0..40 {
        let body = Bytes::from(vec![b'x'; super::super::MAX_BODY_BYTES]);
        let write = WriteRequest {
            body,
            ..attempt(token, 0, "")
        };
        server.client.put(&write).await.unwrap();
    }
    assert_eq!(server.client.log().await.unwrap().len(), 40);
    server.stop().await;
}

#[tokio::test]
async fn following_yields_rows_as_they_are_accepted_and_ends_with_the_server() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    server.put(1, 0, "before").await;
    let mut rows = pin!(server.client.follow().await.unwrap());
    assert_eq!(rows.try_next().await.unwrap().unwrap().seq, 1);
    for token in 2..=5 {
        server.put(token, 0, "v").await;
        let row = rows.try_next().await.unwrap().unwrap();
        assert_eq!((row.seq, row.token), (token, Some(FencingToken(token))));
    }
    server.stop().await;
    assert!(rows.next().await.is_none());
}

#[tokio::test]
async fn following_an_empty_log_waits_for_the_first_row() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    let mut rows = pin!(server.client.follow().await.unwrap());
    server.put(1, 0, "v").await;
    server.stop().await;
    // Rows that were acknowledged before the stop still arrive.
    assert_eq!(rows.try_next().await.unwrap().unwrap().seq, 1);
    assert!(rows.next().await.is_none());
}
