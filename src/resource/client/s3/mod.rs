//! The resource as objects of an S3. A worker writes to them itself, with `object_store`: the token
//! is in the object, and the ETag makes the comparison and the write one step.

mod bucket;
mod connector;
mod crypto;
mod judged;
mod styled;

use super::http::HttpClient;
use super::{
    ClientError, LONGEST_CONNECT, RowResult, Stored, WriteAnswer, after_no_answer, bad_request,
    no_answer,
};
use crate::model::{Fence, LogRow, WriteStyle, without_password};
use crate::resource::limits::{MAX_BODY_BYTES, key_problem};
use crate::resource::s3::{DEFAULT_BUCKET, DEFAULT_KEY, S3Row};
use crate::resource::state::{Highest, Pair, Ruling, WriteRequest};
pub use bucket::open_bucket;
use fencing_lock::AwsCredentials;
use futures_util::{Stream, StreamExt};
use judged::{Envelope, Judged, NEVER};
use object_store::aws::AmazonS3;
use object_store::client::HttpError;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, UpdateVersion};
use parking_lot::Mutex;
use reqwest::Url;
use std::collections::HashMap;
use std::error::Error as StdError;
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

#[derive(Clone, Debug)]
pub struct S3Client {
    store: Arc<AmazonS3>,
    /// The log of our own role, which is no part of S3.
    log: HttpClient,
    bucket: String,
    fence: Fence,
    style: WriteStyle,
    /// Whether the token was high enough when it was compared before the write.
    checked: Arc<Mutex<Option<bool>>>,
    timeout: Duration,
    /// What this client has seen last of each key.
    seen: Arc<Mutex<HashMap<String, Seen>>>,
}

const LOG: &[&str] = &["-", "log"];
/// How often a write is compared with what others have written in the meantime.
const MOST_TURNS: u32 = 16;
/// How often the same write is sent again because its connection ended without an answer.
const SENT_AGAIN: u32 = 5;
/// The pause before that.
const BEFORE_AGAIN: Duration = Duration::from_secs(1);

/// An object as it was read or written, without its value.
#[derive(Clone, Debug)]
struct Seen {
    version: UpdateVersion,
    /// None if it was written without a token.
    highest: Option<Highest>,
}

impl S3Client {
    /// Reads `s3://key:secret@host:port/bucket`, with `?fence=off` for writes that compare nothing.
    pub fn new(url: &str, timeout: Duration) -> Result<S3Client, ClientError> {
        let address = |reason: String| ClientError::Address {
            url: without_password(url),
            reason,
        };
        let given = Url::parse(url).map_err(|error| address(error.to_string()))?;
        let mut fence = Fence::On;
        for (name, value) in given.query_pairs() {
            match name.as_ref() {
                "fence" => {
                    let parsed = value.parse();
                    fence =
                        parsed.map_err(|_| address(format!("fence={value}: it is on or off")))?;
                }
                _ => return Err(address(format!("{name} is no setting of it"))),
            }
        }
        let (Some(host), Some(port)) = (given.host_str(), given.port()) else {
            return Err(address("it has no host and port".to_owned()));
        };
        let or = |given: &str, default: &str| match given {
            "" => default.to_owned(),
            given => given.to_owned(),
        };
        let endpoint = format!("http://{host}:{port}");
        let bucket = or(given.path().trim_matches('/'), DEFAULT_BUCKET);
        let credentials = AwsCredentials::new(
            or(given.username(), DEFAULT_KEY),
            or(given.password().unwrap_or_default(), DEFAULT_KEY),
        );
        let connect_timeout = timeout.min(LONGEST_CONNECT);
        let store = open_bucket(&endpoint, &bucket, &credentials, connect_timeout);
        Ok(S3Client {
            store: Arc::new(store.map_err(address)?),
            log: HttpClient::new(&endpoint, timeout)?,
            bucket,
            fence,
            style: WriteStyle::default(),
            checked: Arc::default(),
            timeout,
            seen: Arc::default(),
        })
    }

    /// Writes if the object is still the one that was seen last and the token in it allows it. If
    /// somebody else has written since, the token of that decides.
    async fn write(&self, write: &WriteRequest, fence: Fence) -> Result<WriteAnswer, ClientError> {
        let name = format!("PUT s3://{}/{}", self.bucket, write.key);
        let mut unanswered = 0;
        let answer = self.turns(&name, write, fence, &mut unanswered).await;
        match unanswered {
            0 => answer,
            _ => after_no_answer(&name, answer),
        }
    }

    async fn turns(
        &self,
        name: &str,
        write: &WriteRequest,
        fence: Fence,
        unanswered: &mut u32,
    ) -> Result<WriteAnswer, ClientError> {
        let path = path_of(name, &write.key)?;
        let content = Envelope::of(write).to_bytes();
        if content.len() > MAX_BODY_BYTES {
            let length = content.len();
            let message =
                format!("an object has at most {MAX_BODY_BYTES} bytes, and this {length}");
            return Err(bad_request(name, message));
        }
        for _ in 0..MOST_TURNS {
            let seen = self.seen.lock().get(&write.key).cloned();
            let (mode, is_refused) = match fence {
                Fence::Off => (PutMode::Overwrite, false),
                Fence::On => fenced(name, write, seen)?,
            };
            let sent = PutOptions::from(mode);
            let sent = self.store.put_opts(&path, content.clone().into(), sent);
            let sent = timeout(self.timeout, sent).await;
            let sent = sent.map_err(|_| no_answer(name, "it did not come in time"))?;
            match sent {
                Ok(done) => {
                    let seen = Seen::of(write, UpdateVersion::from(done));
                    let position = seen.position();
                    self.seen.lock().insert(write.key.clone(), seen);
                    return Ok(WriteAnswer::Accepted { position });
                }
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                    let Some((found, _)) = self.object(name, &path, &write.key).await? else {
                        continue;
                    };
                    match ruling(name, write, Some(&found))? {
                        Ruling::Repeat { position } => {
                            return Ok(WriteAnswer::Accepted { position });
                        }
                        Ruling::Refuse { seen, got } if is_refused => {
                            let (seen, got) = (seen.token, got.token);
                            return Ok(WriteAnswer::Rejected { seen, got });
                        }
                        // What was found may be newer than what refused this put, so the log may lack
                        // the refusal: the next turn leaves it there.
                        Ruling::Apply | Ruling::Refuse { .. } => {}
                    }
                }
                // Whether it was applied is unknown. The condition makes a second one harmless; without
                // one it may undo what others have written since.
                Err(error) if is_lost(&error) && *unanswered < SENT_AGAIN => {
                    *unanswered += 1;
                    sleep(BEFORE_AGAIN).await;
                }
                Err(error) => return Err(failed(name, error)),
            }
        }
        Err(no_answer(name, "others wrote again and again"))
    }

    pub async fn get(&self, key: &str) -> Result<Option<Stored>, ClientError> {
        let name = format!("GET s3://{}/{key}", self.bucket);
        let path = path_of(&name, key)?;
        let found = self.object(&name, &path, key).await?;
        Ok(found.map(|(seen, envelope)| Stored {
            position: seen.position(),
            max_fence: envelope.token,
            value: envelope.value,
        }))
    }

    async fn object(
        &self,
        name: &str,
        path: &Path,
        key: &str,
    ) -> Result<Option<(Seen, Envelope)>, ClientError> {
        let reading = async {
            let found = self.store.get(path).await?;
            let version = UpdateVersion {
                e_tag: found.meta.e_tag.clone(),
                version: found.meta.version.clone(),
            };
            Ok((version, found.bytes().await?))
        };
        let read = timeout(self.timeout, reading).await;
        let read = read.map_err(|_| no_answer(name, "it did not come in time"))?;
        let (version, bytes) = match read {
            Ok(read) => read,
            Err(Error::NotFound { .. }) => {
                self.seen.lock().remove(key);
                return Ok(None);
            }
            Err(error) => return Err(failed(name, error)),
        };
        let envelope: Envelope = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("somebody else wrote this object: {error}; use another key");
            bad_request(name, message)
        })?;
        let seen = Seen::of(&envelope.to_write(key), version);
        self.seen.lock().insert(key.to_owned(), seen.clone());
        Ok(Some((seen, envelope)))
    }

    pub async fn log(&self) -> Result<Vec<LogRow>, ClientError> {
        let rows: Vec<S3Row> = self.log.log(LOG).await?;
        let mut judged = Judged::new(&self.bucket);
        Ok(rows.into_iter().filter_map(|row| judged.row(row)).collect())
    }

    pub async fn follow(
        &self,
    ) -> Result<impl Stream<Item = RowResult> + Send + use<>, ClientError> {
        let rows = self.log.follow::<S3Row>(LOG).await?;
        let mut judged = Judged::new(&self.bucket);
        Ok(rows.filter_map(move |row| {
            let row = match row {
                Ok(row) => judged.row(row).map(Ok),
                Err(error) => Some(Err(error)),
            };
            std::future::ready(row)
        }))
    }
}

impl Seen {
    fn of(write: &WriteRequest, version: UpdateVersion) -> Seen {
        let mut seen = Seen {
            version,
            highest: None,
        };
        seen.highest = write.token.map(|token| Highest {
            pair: Pair {
                token,
                seq: write.token_seq,
            },
            owner: write.owner.clone(),
            body: write.body.clone(),
            position: seen.position(),
        });
        seen
    }

    /// Returns the id of the version, which is its position in the log.
    fn position(&self) -> u64 {
        let id = self.version.version.as_ref();
        id.and_then(|id| id.parse().ok()).unwrap_or_default()
    }
}

fn ruling(name: &str, write: &WriteRequest, seen: Option<&Seen>) -> Result<Ruling, ClientError> {
    let highest = seen.and_then(|seen| seen.highest.as_ref());
    Ruling::of(write, highest).map_err(|_| {
        let message = "a write needs a token: the fence is on".to_owned();
        bad_request(name, message)
    })
}

/// Returns the condition of a put, and whether the token in the object forbids it. A put that changes
/// nothing has a condition that never holds, and is sent so that the log of the store has it.
fn fenced(
    name: &str,
    write: &WriteRequest,
    seen: Option<Seen>,
) -> Result<(PutMode, bool), ClientError> {
    Ok(match (ruling(name, write, seen.as_ref())?, seen) {
        (Ruling::Apply, Some(seen)) => (PutMode::Update(seen.version), false),
        (Ruling::Apply, None) => (PutMode::Create, false),
        (ruling @ (Ruling::Repeat { .. } | Ruling::Refuse { .. }), _) => {
            let never = UpdateVersion {
                e_tag: Some(format!("\"{NEVER}\"")),
                version: None,
            };
            let is_refused = matches!(ruling, Ruling::Refuse { .. });
            (PutMode::Update(never), is_refused)
        }
    })
}

fn path_of(name: &str, key: &str) -> Result<Path, ClientError> {
    match key_problem(key) {
        Some(message) => Err(bad_request(name, message)),
        None => Path::parse(key).map_err(|error| bad_request(name, error.to_string())),
    }
}

/// Returns whether a connection ended without an answer. What a server answers is not asked again.
fn is_lost(error: &Error) -> bool {
    let mut causes = successors(error.source(), |&cause| cause.source());
    matches!(error, Error::Generic { .. }) && causes.any(|cause| cause.is::<HttpError>())
}

fn failed(name: &str, error: Error) -> ClientError {
    match error {
        Error::NotFound { .. } | Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            ClientError::Refused {
                request: name.to_owned(),
                message: error.to_string(),
            }
        }
        error => no_answer(name, error.to_string()),
    }
}
