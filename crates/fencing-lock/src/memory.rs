use crate::address::http_server;
use crate::{
    Ask, Attempt, Env, FencingToken, Grant, LastWord, LockBackend, LockError, LockProblem,
    ReleaseOutcome, RenewOutcome, Term, WaitLine,
};
use async_trait::async_trait;
use memory_lock_server::{Answer, Request, longest_wait};
use prometheus_client::metrics::counter::Counter;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::time::{Instant, timeout};

/// A lock on one server in memory, for simulations: a lease, a line of waiters, and a token
/// from the server's only counter. All of them are gone with its process.
///
/// Each request has a connection of its own. A waiter asks again at half of its TTL, and
/// counts from that request, whenever it was handed the lock.
pub struct MemoryBackend {
    server: MemoryServer,
    node: String,
    requests: Counter,
}

/// A server in memory, past any lock.
pub struct MemoryServer {
    host: String,
    port: u16,
    env: Env,
}

const NAME: &str = "memory";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(1);
const ANSWER_MAX: u64 = 4096;

impl MemoryServer {
    /// Does not connect before the first question.
    pub fn new(address: &str, env: Env) -> Result<MemoryServer, LockProblem> {
        let (host, port) = http_server(address, None)?;
        Ok(MemoryServer { host, port, env })
    }

    #[cfg(feature = "servers")]
    pub async fn ask(&self, request: &Request) -> Result<Answer, LockProblem> {
        self.ask_within(request, RESPONSE_TIMEOUT).await
    }

    async fn ask_within(&self, request: &Request, limit: Duration) -> Result<Answer, LockProblem> {
        let unreachable = |why: String| LockProblem::Unreachable(why);
        let dial = timeout(CONNECT_TIMEOUT, self.env.dial(&self.host, self.port)).await;
        let dialed = dial.map_err(|_| unreachable(nothing_within(CONNECT_TIMEOUT)))?;
        let mut stream = BufReader::new(dialed.map_err(|error| unreachable(error.to_string()))?);
        let exchange = async {
            stream.write_all(format!("{request}\n").as_bytes()).await?;
            stream.flush().await?;
            let mut line = String::new();
            match stream.take(ANSWER_MAX).read_line(&mut line).await? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok::<String, io::Error>(line),
            }
        };
        let answer = timeout(limit, exchange).await;
        let answer = answer.map_err(|_| LockProblem::NoAnswer(nothing_within(limit)))?;
        let line = answer.map_err(|error| LockProblem::NoAnswer(error.to_string()))?;
        let answer = line.trim_end().parse();
        answer.map_err(|_| LockProblem::BadAnswer(format!("{line:?}")))
    }
}

fn nothing_within(limit: Duration) -> String {
    format!("nothing within {} ms", limit.as_millis())
}

impl MemoryBackend {
    /// Does not connect before the first use, so an unreachable server is not an error
    /// here.
    pub fn with_env(address: &str, env: Env) -> Result<MemoryBackend, LockError> {
        let server = MemoryServer::new(address, env);
        let server = server.map_err(|problem| LockError::new(NAME, address, "", problem))?;
        Ok(MemoryBackend {
            node: format!("{}:{}", server.host, server.port),
            server,
            requests: Counter::default(),
        })
    }

    async fn ask(&self, request: Request, limit: Duration) -> Result<Answer, LockProblem> {
        self.requests.inc();
        self.server.ask_within(&request, limit).await
    }

    /// Asks once for the lock. A request that waits is answered late, if the lock is held.
    async fn acquire(&self, ask: Ask<'_>, waits: bool) -> Result<Attempt, LockProblem> {
        let Ask { key, owner, ttl } = ask;
        let request = Request::Acquire {
            key: key.to_owned(),
            owner: owner.to_owned(),
            ttl,
            waits,
        };
        let wait = if waits {
            longest_wait(ttl)
        } else {
            Duration::ZERO
        };
        // This is from before the request was sent: the server counts from later.
        let asked_at = Instant::now();
        match self.ask(request, wait + RESPONSE_TIMEOUT).await? {
            Answer::Granted { token } => {
                let term = Term::Until(asked_at + ttl);
                Grant::new(FencingToken(token), asked_at, ttl, term).map(Attempt::Granted)
            }
            Answer::Held { left } => Ok(Attempt::Busy { retry_in: left }),
            Answer::GivenUp => {
                let reason = "this try was given up before it came";
                Err(LockProblem::Refused(reason.to_owned()))
            }
            other => Err(is_strange(&other)),
        }
    }

    async fn wait_for_grant(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockProblem> {
        loop {
            match self.acquire(ask, true).await? {
                Attempt::Granted(grant) => return Ok(grant),
                Attempt::Busy { .. } => last.is_busy(),
            }
        }
    }
}

fn is_strange(answer: &Answer) -> LockProblem {
    LockProblem::BadAnswer(answer.to_string())
}

#[async_trait]
impl LockBackend for MemoryBackend {
    fn name(&self) -> &'static str {
        NAME
    }

    fn node(&self) -> &str {
        &self.node
    }

    fn requests(&self) -> Counter {
        self.requests.clone()
    }

    fn env(&self) -> &Env {
        &self.server.env
    }

    async fn try_acquire(&self, ask: Ask<'_>) -> Result<Attempt, LockError> {
        let attempt = self.acquire(ask, false).await;
        attempt.map_err(|problem| self.error(ask.key, problem))
    }

    fn line(&self) -> Option<&dyn WaitLine> {
        Some(self)
    }

    async fn renew(&self, ask: Ask<'_>) -> Result<RenewOutcome, LockError> {
        let request = Request::Renew {
            key: ask.key.to_owned(),
            owner: ask.owner.to_owned(),
            ttl: ask.ttl,
        };
        let until = Instant::now() + ask.ttl;
        let answer = self.ask(request, RESPONSE_TIMEOUT).await;
        let outcome = answer.and_then(|answer| match answer {
            Answer::Renewed => Ok(RenewOutcome::Renewed { until }),
            Answer::Expired => Ok(RenewOutcome::Expired),
            Answer::Superseded => Ok(RenewOutcome::Superseded),
            other => Err(is_strange(&other)),
        });
        outcome.map_err(|problem| self.error(ask.key, problem))
    }

    /// Keeps an earlier request from taking effect later, too: the server remembers the owner.
    async fn release(&self, key: &str, owner: &str) -> Result<ReleaseOutcome, LockError> {
        let request = Request::Release {
            key: key.to_owned(),
            owner: owner.to_owned(),
        };
        let answer = self.ask(request, RESPONSE_TIMEOUT).await;
        let outcome = answer.and_then(|answer| match answer {
            Answer::Released => Ok(ReleaseOutcome::Released),
            Answer::Expired => Ok(ReleaseOutcome::Expired),
            Answer::Superseded => Ok(ReleaseOutcome::Superseded),
            other => Err(is_strange(&other)),
        });
        outcome.map_err(|problem| self.error(key, problem))
    }
}

#[async_trait]
impl WaitLine for MemoryBackend {
    async fn wait(&self, ask: Ask<'_>, last: &LastWord) -> Result<Grant, LockError> {
        let granted = self.wait_for_grant(ask, last).await;
        granted.map_err(|problem| self.error(ask.key, problem))
    }
}
