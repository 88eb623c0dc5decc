//! The resource of a simulation: it decides as the service does, in this process, and keeps its log
//! in memory. Workers reach it over connections that are simulated too.

use super::{ClientError, LONGEST_CONNECT, RowResult, Stored, WriteAnswer, no_answer};
use crate::clock::raw_monotonic_ns;
use crate::model::{Fence, FencingToken, LogRow, RowValue};
use crate::resource::limits::MAX_ROW_BYTES;
use crate::resource::state::{Answer, State, Undecided, WriteRequest};
#[cfg(debug_assertions)]
use crate::resource::{Mutant, commit::Ledger};
use fencing_lock::{Dialed, Env};
use futures_util::stream::unfold;
use futures_util::{FutureExt, Stream};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::watch;
use tokio::time::timeout;

/// The resource itself. Clones are the same resource.
#[derive(Clone)]
pub struct PlayedResource {
    held: Arc<Mutex<Held>>,
    /// The number of rows.
    grown: Arc<watch::Sender<usize>>,
}

struct Held {
    state: State,
    log: Vec<LogRow>,
    stale_rejections: u64,
}

/// A request, one in a line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Get(String),
    Put {
        key: String,
        token: Option<FencingToken>,
        token_seq: u64,
        owner: Option<String>,
        based_on: Option<u64>,
        body: RowValue,
    },
}

/// An answer, one in a line.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Stored(Option<Stored>),
    Accepted {
        position: u64,
    },
    Rejected {
        seen: FencingToken,
        got: FencingToken,
    },
    Refused {
        status: u16,
        message: String,
    },
}

/// What a client of HTTP reads, such as a probe. It is about as long as the answer of the service.
const OF_HTTP: &[u8] =
    b"HTTP/1.1 404 Not Found\r\nserver: the resource of a simulation\r\ncontent-length: 0\r\n\r\n";

impl PlayedResource {
    pub fn new(fence: Fence) -> PlayedResource {
        let held = Held {
            state: State::new(fence),
            log: Vec::new(),
            stale_rejections: 0,
        };
        PlayedResource {
            held: Arc::new(Mutex::new(held)),
            grown: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Has it make a mistake on purpose.
    #[cfg(debug_assertions)]
    pub fn misbehave(&self, mutant: Option<Mutant>) {
        self.held.lock().state.misbehave(mutant);
    }

    /// Forgets what is not on disk and reads its log, as at a new start.
    pub fn start_again(&self) {
        let held = &mut *self.held.lock();
        held.stale_rejections = 0;
        held.state.start_again(&held.log);
    }

    /// Serves one client until it closes the connection.
    pub async fn serve(&self, stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
        let mut stream = BufReader::new(stream);
        while let Some(line) = bounded_io::line(&mut stream, MAX_ROW_BYTES).await? {
            let answer = match serde_json::from_slice::<Request>(&line) {
                // The end of a request that was cut off is not the end of a line.
                _ if !line.ends_with(b"\n") => return Ok(()),
                Ok(request) => to_line(&self.answer(request))?,
                Err(_) if line.starts_with(b"GET ") => OF_HTTP.to_vec(),
                // The headers of a request.
                Err(_) => continue,
            };
            stream.write_all(&answer).await?;
        }
        Ok(())
    }

    fn answer(&self, request: Request) -> Reply {
        let mut held = self.held.lock();
        let write = match request {
            Request::Get(key) => return Reply::Stored(held.get(&key)),
            Request::Put {
                key,
                token,
                token_seq,
                owner,
                based_on,
                body,
            } => WriteRequest {
                key,
                token,
                token_seq,
                owner,
                based_on,
                body: body.as_bytes().to_vec().into(),
            },
        };
        let decision = match held.state.decide(write, raw_monotonic_ns()) {
            Ok(decision) => decision,
            Err(undecided) => {
                let (status, message) = match undecided {
                    Undecided::TokenMissing => (400, "a write needs a token"),
                    Undecided::Full => (507, "no room for this value"),
                };
                let message = message.to_owned();
                return Reply::Refused { status, message };
            }
        };
        held.log.push(decision.row);
        self.grown.send_replace(held.log.len());
        match decision.answer {
            Answer::Accepted { position, .. } => Reply::Accepted { position },
            Answer::Rejected { seen, got } => {
                held.stale_rejections += 1;
                Reply::Rejected {
                    seen: seen.token,
                    got: got.token,
                }
            }
        }
    }

    /// Returns every row, each as soon as it is there.
    fn follow(&self) -> impl Stream<Item = RowResult> + Send + use<> {
        let from = (self.clone(), self.grown.subscribe(), 0);
        unfold(from, |(resource, mut grown, at)| async move {
            grown.wait_for(|length| *length > at).await.ok()?;
            let row = resource.held.lock().log.get(at).cloned()?;
            Some((Ok(row), (resource, grown, at + 1)))
        })
    }
}

impl Held {
    fn get(&self, key: &str) -> Option<Stored> {
        let stored = self.state.get(key)?;
        Some(Stored {
            value: stored.value,
            max_fence: stored.max_fence,
            position: stored.position,
        })
    }
}

/// A client of the resource.
#[derive(Clone, Debug)]
pub enum PlayedClient {
    /// The orchestrator, which no fault cuts off.
    Beside(PlayedResource),
    Over(Arc<PlayedConnection>),
}

/// The connection of a worker, which is opened again when it has broken.
pub struct PlayedConnection {
    env: Env,
    host: String,
    port: u16,
    timeout: Duration,
    open: tokio::sync::Mutex<Option<BufReader<Dialed>>>,
}

impl PlayedClient {
    /// Makes a client that connects when it has to. `timeout` bounds each request.
    pub fn over(env: Env, host: &str, port: u16, timeout: Duration) -> PlayedClient {
        PlayedClient::Over(Arc::new(PlayedConnection {
            env,
            host: host.to_owned(),
            port,
            timeout,
            open: tokio::sync::Mutex::default(),
        }))
    }

    /// Sends a write. What was sent is under way even if its sender is stopped or dies.
    pub(super) async fn put(&self, write: &WriteRequest) -> Result<WriteAnswer, ClientError> {
        let request = Request::Put {
            key: write.key.clone(),
            token: write.token,
            token_seq: write.token_seq,
            owner: write.owner.clone(),
            based_on: write.based_on,
            body: RowValue::from_bytes(&write.body),
        };
        let name = format!("PUT /r/{}", write.key);
        match self.ask(&name, request).await? {
            Reply::Accepted { position } => Ok(WriteAnswer::Accepted { position }),
            Reply::Rejected { seen, got } => Ok(WriteAnswer::Rejected { seen, got }),
            other => Err(unlike(&name, other)),
        }
    }

    pub(super) async fn get(&self, key: &str) -> Result<Option<Stored>, ClientError> {
        let name = format!("GET /r/{key}");
        match self.ask(&name, Request::Get(key.to_owned())).await? {
            Reply::Stored(stored) => Ok(stored),
            other => Err(unlike(&name, other)),
        }
    }

    async fn ask(&self, name: &str, request: Request) -> Result<Reply, ClientError> {
        match self {
            PlayedClient::Beside(resource) => Ok(resource.answer(request)),
            PlayedClient::Over(connection) => {
                let asked = timeout(connection.timeout, connection.ask(&request)).await;
                let asked = asked.unwrap_or_else(|late| Err(late.into()));
                asked.map_err(|error| no_answer(name, error.to_string()))
            }
        }
    }

    pub(super) fn log(&self) -> Result<Vec<LogRow>, ClientError> {
        let resource = self.beside()?;
        #[cfg(debug_assertions)]
        resource.held.lock().state.log_was_read();
        Ok(resource.held.lock().log.clone())
    }

    pub(super) fn stale_rejections(&self) -> Result<u64, ClientError> {
        Ok(self.beside()?.held.lock().stale_rejections)
    }

    pub(super) fn follow(
        &self,
    ) -> Result<impl Stream<Item = RowResult> + Send + use<>, ClientError> {
        Ok(self.beside()?.follow())
    }

    fn beside(&self) -> Result<&PlayedResource, ClientError> {
        match self {
            PlayedClient::Beside(resource) => Ok(resource),
            PlayedClient::Over(_) => Err(no_answer("GET /log", "workers do not read the log")),
        }
    }
}

impl PlayedConnection {
    async fn ask(&self, request: &Request) -> io::Result<Reply> {
        let mut open = self.open.lock().await;
        // A request that is given up takes its connection with it.
        let mut stream = match open.take().and_then(usable) {
            Some(stream) => stream,
            None => {
                let dialled = timeout(LONGEST_CONNECT, self.env.dial(&self.host, self.port));
                BufReader::new(dialled.await??)
            }
        };
        stream.write_all(&to_line(request)?).await?;
        let line = bounded_io::line(&mut stream, MAX_ROW_BYTES).await?;
        let line = line.ok_or(io::ErrorKind::UnexpectedEof)?;
        *open = Some(stream);
        Ok(serde_json::from_slice(&line)?)
    }
}

/// Returns the connection, unless the other side has closed it.
fn usable(mut stream: BufReader<Dialed>) -> Option<BufReader<Dialed>> {
    let is_quiet = stream.fill_buf().now_or_never().is_none();
    is_quiet.then_some(stream)
}

fn to_line(content: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(content)?;
    line.push(b'\n');
    Ok(line)
}

fn unlike(name: &str, reply: Reply) -> ClientError {
    match reply {
        Reply::Refused { status, message } => ClientError::BadRequest {
            request: name.to_owned(),
            status,
            message,
        },
        Reply::Stored(_) | Reply::Accepted { .. } | Reply::Rejected { .. } => {
            no_answer(name, "it is the answer to another request")
        }
    }
}

impl fmt::Debug for PlayedResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlayedResource")
    }
}

impl fmt::Debug for PlayedConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PlayedConnection({}:{})", self.host, self.port)
    }
}
