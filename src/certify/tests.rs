//! Stores that do what no store of the suite does.

use super::checks::{Checks, run};
use super::store::{Answer, Attempt, Book, Condition, StoreResult, Version};
use super::*;
use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bounded_io::serve::serve;
use bytes::Bytes;
use fencing_lock::AwsCredentials;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Answers the third write, which is the second one again, in its own way.
struct Repeated {
    recognises: bool,
    again: Answer,
    applies_again: bool,
    writes: AtomicU32,
    now: Mutex<(Version, Vec<u8>)>,
    book: Book,
}

#[async_trait]
impl Store for Repeated {
    async fn prepare(&self) -> StoreResult<()> {
        Ok(())
    }

    fn lacks(&self, _: Property) -> Option<&'static str> {
        None
    }

    async fn write(&self, attempt: &Attempt) -> StoreResult<Answer> {
        let count = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        if count < 3 || self.applies_again {
            *self.now.lock() = (count.to_string(), attempt.body.to_vec());
        }
        Ok(match count {
            3 => self.again.clone(),
            _ => Answer::Accepted(count.to_string()),
        })
    }

    async fn slow_write(
        &self,
        attempt: &Attempt,
        _: oneshot::Sender<()>,
        _: oneshot::Receiver<()>,
    ) -> StoreResult<Answer> {
        self.write(attempt).await
    }

    fn recognises_repetitions(&self) -> bool {
        self.recognises
    }

    async fn read(&self, _: &str) -> StoreResult<Option<(Version, Vec<u8>)>> {
        Ok(Some(self.now.lock().clone()))
    }

    async fn delete(&self, _: &str) -> StoreResult<()> {
        Ok(())
    }

    async fn list(&self) -> StoreResult<Vec<String>> {
        Ok(Vec::new())
    }

    fn place(&self) -> String {
        String::new()
    }

    async fn remove(&self) -> Result<(), String> {
        Ok(())
    }

    fn book(&self) -> &Book {
        &self.book
    }
}

#[tokio::test]
async fn a_write_that_is_sent_again_has_one_right_answer() {
    let accepted = || Answer::Accepted("2".to_owned());
    for (recognises, again, applies_again, is_kept) in [
        (true, accepted(), false, true),
        (true, accepted(), true, false),
        (true, Answer::Refused, false, false),
        (false, Answer::Refused, false, true),
        (false, Answer::Refused, true, false),
        // With ETags of the content, the second one shows in the answer alone.
        (false, accepted(), false, false),
    ] {
        let shown = format!("{recognises} {again:?} {applies_again}");
        let store = Repeated {
            recognises,
            again,
            applies_again,
            writes: AtomicU32::default(),
            now: Mutex::default(),
            book: Book::default(),
        };
        let checks = Checks {
            store: &store,
            restart: None,
        };
        let verdict = checks.check(Property::LostAnswer).await.unwrap();
        assert_eq!(verdict == Verdict::Kept, is_kept, "{shown}: {verdict:?}");
    }
}

/// What an S3 answers to each method, whatever is asked.
type Answers = Arc<dyn Fn(&Method) -> Response + Send + Sync>;

/// Starts one; returns also its address.
async fn an_s3(answers: Answers) -> (S3Store, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let answer = move |asked: Request<Body>| {
        let answer = answers(asked.method());
        async move { answer }
    };
    let router = Router::new().fallback(answer);
    tokio::spawn(serve(listener, router, CancellationToken::new()));
    let at = S3Address {
        endpoint: endpoint.clone(),
        region: "us-east-1".to_owned(),
        bucket: "bucket".to_owned(),
        prefix: String::new(),
        credentials: AwsCredentials::new("key", "secret"),
    };
    (S3Store::new(at, "id").unwrap(), endpoint)
}

fn create() -> Attempt {
    Attempt {
        key: "key".to_owned(),
        condition: Condition::Absent,
        body: Bytes::from_static(b"body"),
        by: 1,
    }
}

#[tokio::test]
async fn an_object_is_removed_when_the_store_says_so_and_lists_it_no_more() {
    let listed = "<Key>fencepost-certify-id/key</Key>";
    for (deleted, list, is_removed) in [
        (StatusCode::NO_CONTENT, "", true),
        (StatusCode::NOT_FOUND, "", true),
        (StatusCode::FORBIDDEN, "", false),
        (StatusCode::METHOD_NOT_ALLOWED, "", false),
        (StatusCode::SERVICE_UNAVAILABLE, "", false),
        (StatusCode::NO_CONTENT, listed, false),
    ] {
        let answers = move |method: &Method| match *method {
            Method::PUT => [(header::ETAG, "\"tag\"")].into_response(),
            Method::DELETE => deleted.into_response(),
            _ => list.into_response(),
        };
        let (store, _) = an_s3(Arc::new(answers)).await;
        store.write(&create()).await.unwrap();
        let removed = store.remove().await;
        assert_eq!(removed.is_ok(), is_removed, "{deleted} {list}: {removed:?}");
        assert_eq!(store.leaves(), None);
    }
}

#[tokio::test]
async fn a_bucket_that_keeps_versions_is_named() {
    let answers = |_: &Method| {
        let headers = [("etag", "\"tag\""), ("x-amz-version-id", "7")];
        headers.into_response()
    };
    let (store, _) = an_s3(Arc::new(answers)).await;
    store.write(&create()).await.unwrap();
    let leaves = store.leaves().expect("versions");
    assert!(
        leaves.contains("s3://bucket/fencepost-certify-id/"),
        "{leaves}"
    );
}

/// The request is signed for one host, and may carry what nobody else is to see.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Arc::new(AtomicU32::default());
    let counted = elsewhere.clone();
    let other = an_s3(Arc::new(move |_: &Method| {
        counted.fetch_add(1, Ordering::Relaxed);
        StatusCode::OK.into_response()
    }));
    let (_, location) = other.await;
    let answers = move |_: &Method| {
        let to = [(header::LOCATION, location.clone())];
        (StatusCode::TEMPORARY_REDIRECT, to).into_response()
    };
    let (store, _) = an_s3(Arc::new(answers)).await;
    store.write(&create()).await.unwrap_err();
    assert_eq!(elsewhere.load(Ordering::Relaxed), 0);
}

/// Ctrl-C gives a restart up: what the shell has started must not go on.
#[tokio::test]
async fn a_restart_that_is_given_up_ends_with_all_that_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    // It holds the pipe open for as long as it lives.
    let command = format!("(echo begun; sleep 1000) > {}; true", pipe.display());
    let restart = tokio::spawn(async move { run(&command).await });
    let mut read = tokio::fs::File::open(&pipe).await.unwrap();
    let mut begun = [0; 6];
    read.read_exact(&mut begun).await.unwrap();
    restart.abort();
    let rest = timeout(Duration::from_secs(20), read.read_to_end(&mut Vec::new())).await;
    assert_eq!(rest.expect("nobody holds the pipe any more").unwrap(), 0);
}
