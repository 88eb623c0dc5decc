//! Any S3, by requests of our own: a library would not send half of a body.

use super::Property;
use super::store::{
    ANSWER_DEADLINE, Answer, Attempt, Book, Condition, Store, StoreError, StoreResult, Version,
};
use crate::resource::s3::{canonical, sha256};
use crate::resource::{chain, halves};
use async_trait::async_trait;
use fencing_lock::AwsCredentials;
use fencing_lock::servers::{SignatureScope, aws_timestamp};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;
use tokio::sync::oneshot;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;

#[derive(Clone, Debug)]
pub struct S3Address {
    /// `http://host:port`
    pub endpoint: String,
    pub region: String,
    pub bucket: String,
    /// What the prefix of a certificate begins with.
    pub prefix: String,
    pub credentials: AwsCredentials,
}

pub struct S3Store {
    http: Client,
    endpoint: Url,
    at: S3Address,
    /// The prefix that is made for one certificate, and ends with a slash.
    prefix: String,
    book: Book,
    /// The bucket keeps what was replaced and deleted.
    keeps_versions: AtomicBool,
}

impl S3Store {
    /// Makes a prefix of its own below the address. The text is for a user of the command.
    pub fn new(at: S3Address, id: &str) -> Result<S3Store, String> {
        let endpoint = Url::parse(&at.endpoint).ok();
        let plain = |url: &Url| url.scheme() == "http" && url.host_str().is_some();
        let endpoint = endpoint.filter(plain).ok_or_else(|| {
            let shown = &at.endpoint;
            format!(
                "cannot use the endpoint {shown}: only plain HTTP is spoken; give http://HOST:PORT"
            )
        })?;
        // A request is signed for one host, and nobody else is to be asked.
        let http = Client::builder().no_proxy().redirect(Policy::none());
        let http = http.build();
        let http = http.map_err(|error| error.to_string())?;
        let prefix = format!("{}fencepost-certify-{id}/", at.prefix);
        Ok(S3Store {
            http,
            endpoint,
            at,
            prefix,
            book: Book::default(),
            keeps_versions: AtomicBool::default(),
        })
    }

    fn request(
        &self,
        method: Method,
        key: Option<&str>,
        parameters: &[(&str, &str)],
        condition: Option<&Condition>,
        body: &[u8],
    ) -> RequestBuilder {
        let key = key.map_or(String::new(), |key| format!("/{}{key}", self.prefix));
        let path = format!("/{}{key}", self.at.bucket);
        let parameters = parameters.iter();
        let parameters: Vec<(String, String)> = parameters
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let query = parameters.iter().map(|(name, value)| {
            let value = canonical::encode(value, false);
            format!("{}={value}", canonical::encode(name, false))
        });
        let query: Vec<String> = query.collect();
        let mut url = self.endpoint.clone();
        url.set_path(&canonical::encode(&path, true));
        url.set_query((!query.is_empty()).then_some(&query.join("&")));
        let host = url.host_str().unwrap_or_default();
        let host = url
            .port()
            .map_or(host.to_owned(), |port| format!("{host}:{port}"));
        let (date, hash) = (aws_timestamp(SystemTime::now()), sha256(body));
        let mut headers = vec![("host", host)];
        match condition {
            Some(Condition::Absent) => headers.push(("if-none-match", "*".to_owned())),
            Some(Condition::Is(version)) => headers.push(("if-match", version.clone())),
            None => {}
        }
        headers.push(("x-amz-content-sha256", hash.clone()));
        headers.push(("x-amz-date", date.clone()));
        let scope = SignatureScope {
            region: &self.at.region,
            service: "s3",
            at: &date,
        };
        let canonical = canonical::request(method.as_str(), &path, &parameters, &headers, &hash);
        let signature = scope.signature(&self.at.credentials.secret_key, &canonical);
        let names: Vec<&str> = headers.iter().map(|(name, _)| *name).collect();
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, Signature={signature}",
            self.at.credentials.access_key,
            scope.place(),
            names.join(";")
        );
        let request = self.http.request(method, url).timeout(ANSWER_DEADLINE);
        let request = request.header("authorization", authorization);
        let headers = headers.into_iter();
        headers.fold(request, |request, (name, value)| {
            request.header(name, value)
        })
    }

    async fn send(&self, request: RequestBuilder) -> StoreResult<Response> {
        self.book.count()?;
        let answer = request.send().await;
        let answer = answer.map_err(|error| StoreError::Unanswered(chain(&error)))?;
        let version = answer.headers().get("x-amz-version-id");
        if version.is_some_and(|version| version != "null") {
            self.keeps_versions.store(true, Ordering::Relaxed);
        }
        Ok(answer)
    }

    fn put(&self, attempt: &Attempt) -> RequestBuilder {
        self.book.note(&attempt.key);
        let (key, condition) = (Some(attempt.key.as_str()), Some(&attempt.condition));
        self.request(Method::PUT, key, &[], condition, &attempt.body)
    }

    /// Removes single keys, without a look at how many requests there were.
    async fn remove_once(&self) -> StoreResult<()> {
        for key in self.book.take() {
            let request = self.request(Method::DELETE, Some(&key), &[], None, b"");
            let answer = self.send(request).await?;
            // It may not be there: a write that was refused has made nothing.
            if answer.status() != StatusCode::NOT_FOUND {
                successful(answer).await?;
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Store for S3Store {
    async fn prepare(&self) -> StoreResult<()> {
        self.list().await.map(drop)
    }

    fn lacks(&self, _: Property) -> Option<&'static str> {
        None
    }

    async fn write(&self, attempt: &Attempt) -> StoreResult<Answer> {
        let request = self.put(attempt).body(attempt.body.clone());
        answer_of(self.send(request).await?).await
    }

    async fn slow_write(
        &self,
        attempt: &Attempt,
        begun: oneshot::Sender<()>,
        go: oneshot::Receiver<()>,
    ) -> StoreResult<Answer> {
        let length = attempt.body.len();
        let request = self.put(attempt).header("content-length", length);
        let request = request.body(halves(attempt.body.clone(), begun, go));
        answer_of(self.send(request).await?).await
    }

    async fn read(&self, key: &str) -> StoreResult<Option<(Version, Vec<u8>)>> {
        let request = self.request(Method::GET, Some(key), &[], None, b"");
        let answer = self.send(request).await?;
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let answer = successful(answer).await?;
        let version = version_of(&answer)?;
        let body = bounded_io::body(answer, MAX_ANSWER_BYTES).await;
        let body = body.map_err(|error| StoreError::Unanswered(error.to_string()))?;
        Ok(Some((version, body)))
    }

    async fn delete(&self, key: &str) -> StoreResult<()> {
        let request = self.request(Method::DELETE, Some(key), &[], None, b"");
        successful(self.send(request).await?).await.map(drop)
    }

    async fn list(&self) -> StoreResult<Vec<String>> {
        let parameters = [("list-type", "2"), ("prefix", self.prefix.as_str())];
        let request = self.request(Method::GET, None, &parameters, None, b"");
        let answer = successful(self.send(request).await?).await?;
        let text = text(answer).await?;
        let keys = text.split("<Key>").skip(1);
        let keys = keys.filter_map(|rest| rest.split_once("</Key>")?.0.rsplit('/').next());
        Ok(keys.map(str::to_owned).collect())
    }

    async fn remove(&self) -> Result<(), String> {
        if self.book.is_empty() {
            return Ok(());
        }
        let removed = async {
            self.remove_once().await?;
            // A write that was given up can still arrive.
            for late in self.list().await? {
                self.book.note(&late);
            }
            self.remove_once().await?;
            match self.list().await?.len() {
                0 => Ok(()),
                left => Err(StoreError::Refused(format!(
                    "the store accepted every DELETE and still lists {left} of them"
                ))),
            }
        };
        match removed.await {
            // A store that has forgotten the bucket has nothing of ours.
            Ok(()) | Err(StoreError::NoSuchBucket(_)) => Ok(()),
            Err(error) => Err(format!("{} may be left: {error}", self.place())),
        }
    }

    fn place(&self) -> String {
        format!("objects below s3://{}/{}", self.at.bucket, self.prefix)
    }

    fn leaves(&self) -> Option<String> {
        let (bucket, prefix) = (&self.at.bucket, &self.prefix);
        let keeps = self.keeps_versions.load(Ordering::Relaxed);
        keeps.then(|| {
            format!("the bucket keeps versions: those below s3://{bucket}/{prefix} stay, and the marks of their deletion")
        })
    }

    fn recognises_repetitions(&self) -> bool {
        false
    }

    fn book(&self) -> &Book {
        &self.book
    }
}

async fn answer_of(answer: Response) -> StoreResult<Answer> {
    // 409 is S3's answer to one of two writes that are under way at the same time.
    let refused = [
        StatusCode::PRECONDITION_FAILED,
        StatusCode::CONFLICT,
        StatusCode::NOT_FOUND,
    ];
    if refused.contains(&answer.status()) {
        let error = S3Error::read(answer).await?;
        return match error.is("NoSuchBucket") {
            true => Err(error.into()),
            false => Ok(Answer::Refused),
        };
    }
    version_of(&successful(answer).await?).map(Answer::Accepted)
}

fn version_of(answer: &Response) -> StoreResult<Version> {
    let etag = answer.headers().get("etag").and_then(|it| it.to_str().ok());
    let etag = etag.map(str::to_owned);
    etag.ok_or_else(|| StoreError::Refused("an answer has no ETag to compare with".to_owned()))
}

async fn successful(answer: Response) -> StoreResult<Response> {
    match answer.status().is_success() {
        true => Ok(answer),
        false => Err(S3Error::read(answer).await?.into()),
    }
}

/// An error as the store reports it.
struct S3Error {
    status: StatusCode,
    /// One of the names that S3 gives to its errors; empty if the answer has none.
    code: String,
    message: String,
}

impl S3Error {
    async fn read(answer: Response) -> StoreResult<S3Error> {
        let status = answer.status();
        let text = text(answer).await?;
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            Some(rest.split_once("</")?.0.to_owned())
        };
        Ok(S3Error {
            status,
            code: element("Code").unwrap_or_default(),
            message: element("Message").unwrap_or_default(),
        })
    }

    fn is(&self, code: &str) -> bool {
        self.code == code
    }
}

impl From<S3Error> for StoreError {
    fn from(error: S3Error) -> StoreError {
        let S3Error {
            status,
            code,
            message,
        } = &error;
        let words = format!("{status} {code}: {message}");
        match *status {
            _ if error.is("NoSuchBucket") => StoreError::NoSuchBucket(words),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => StoreError::Denied(words),
            status if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED => {
                StoreError::Unanswered(words)
            }
            _ if code.is_empty() => StoreError::Refused(format!(
                "{status} is not an answer of an S3; check --endpoint"
            )),
            _ => StoreError::Refused(format!("the store refused a request ({words})")),
        }
    }
}

async fn text(answer: Response) -> StoreResult<String> {
    let body = bounded_io::body(answer, MAX_ANSWER_BYTES).await;
    let body = body.map_err(|error| StoreError::Unanswered(error.to_string()))?;
    Ok(String::from_utf8_lossy(&body).into_owned())
}
