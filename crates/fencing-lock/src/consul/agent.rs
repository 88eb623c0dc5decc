use super::ConsulSettings;
use super::failure::{problem_of, refusal};
use crate::task::Task;
use crate::{Env, LockProblem, without_password};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use std::net::Ipv6Addr;
use std::time::Duration;
use tokio::time::timeout;

/// The HTTP interface of one agent of Consul, which passes everything on to the leader. Each
/// connection carries one request at a time, so no answer is taken for another's.
pub struct Agent {
    host: String,
    port: u16,
    node: String,
    settings: ConsulSettings,
    env: Env,
    idle: Mutex<Vec<Connection>>,
    requests: Counter,
}

struct Connection {
    requests: SendRequest<Full<Bytes>>,
    _io: Task,
}

/// What a server answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    /// The state that the answer is about, for a query that waits for the next one.
    pub(super) index: u64,
    pub(super) body: Bytes,
}

const DEFAULT_PORT: u16 = 8500;
const IDLE_MAX: usize = 16;
/// A list of many locks is much shorter.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;
const HEAD_MAX_BYTES: usize = 64 * 1024;

impl Agent {
    /// Reads `host:port`, or `http://host:port`. It does not connect before the first use.
    pub fn at(address: &str, settings: ConsulSettings, env: Env) -> Result<Agent, LockProblem> {
        let bad = |reason: &str| LockProblem::BadAddress {
            address: without_password(address),
            reason: reason.to_owned(),
        };
        let plain = address.strip_prefix("http://").unwrap_or(address);
        let plain = plain.strip_suffix('/').unwrap_or(plain);
        let (host, port) = match plain.rsplit_once(':') {
            // The last colon of an IPv6 address without a port is within its brackets.
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (plain, None),
        };
        let port = port.map_or(Ok(DEFAULT_PORT), str::parse);
        let port = port.map_err(|_| bad("its port is no number"))?;
        let bracketed = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        let may_be = |c: char| c.is_alphanumeric() || "-._".contains(c);
        let is_host = match bracketed {
            Some(host) => host.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.chars().all(may_be),
        };
        if !is_host {
            return Err(bad("it names no host"));
        }
        let host = bracketed.unwrap_or(host);
        if let Some(token) = &settings.acl_token
            && HeaderValue::from_str(token).is_err()
        {
            let why = "the ACL token has a character that cannot be sent".to_owned();
            return Err(LockProblem::Refused(why));
        }
        Ok(Agent {
            node: match host.contains(':') {
                true => format!("[{host}]:{port}"),
                false => format!("{host}:{port}"),
            },
            host: host.to_owned(),
            port,
            settings,
            env,
            idle: Mutex::default(),
            requests: Counter::default(),
        })
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    pub(super) fn env(&self) -> &Env {
        &self.env
    }

    pub(super) fn settings(&self) -> &ConsulSettings {
        &self.settings
    }

    pub(super) fn requests(&self) -> &Counter {
        &self.requests
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> Result<Answer, LockProblem> {
        let body = match body {
            Value::Null => Bytes::new(),
            body => body.to_string().into(),
        };
        let within = self.settings.response_timeout;
        self.ask(Method::PUT, path, body, within).await
    }

    /// Asks for something that the server may put off for up to `waits`.
    pub(super) async fn get(&self, path: &str, waits: Duration) -> Result<Answer, LockProblem> {
        // The server adds up to a sixteenth, so that not everybody asks again at once.
        let within = waits + waits / 16 + self.settings.response_timeout;
        self.ask(Method::GET, path, Bytes::new(), within).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Answer, LockProblem> {
        loop {
            let (mut connection, is_new) = self.connection().await?;
            self.requests.inc();
            let request = self.request(method.clone(), path, body.clone())?;
            let answered = timeout(within, connection.carry(request)).await;
            let late = || LockProblem::NoAnswer(format!("not within {} ms", within.as_millis()));
            match answered.map_err(|_| late())? {
                // The server had closed a connection that nobody used, before this was sent.
                Err(error) if error.is_canceled() && !is_new => {}
                Err(error) => return Err(problem_of(&error)),
                Ok(response) => {
                    let answer = timeout(within, read(response)).await;
                    let answer = answer.map_err(|_| late())??;
                    self.put_back(connection);
                    return Ok(answer);
                }
            }
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, LockProblem> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(HOST, &self.node);
        if let Some(token) = &self.settings.acl_token {
            request = request.header("X-Consul-Token", token);
        }
        let request = request.body(Full::new(body));
        request.map_err(|error| LockProblem::Refused(error.to_string()))
    }

    /// Returns a connection that nobody uses, and whether it is new.
    async fn connection(&self) -> Result<(Connection, bool), LockProblem> {
        while let Some(mut connection) = self.pop() {
            if connection.requests.ready().await.is_ok() {
                return Ok((connection, false));
            }
        }
        let within = self.settings.connect_timeout;
        let connected = timeout(within, self.connect()).await;
        let late = |_| LockProblem::Unreachable(format!("not within {} ms", within.as_millis()));
        Ok((connected.map_err(late)??, true))
    }

    async fn connect(&self) -> Result<Connection, LockProblem> {
        let unreachable = |error: &dyn ToString| LockProblem::Unreachable(error.to_string());
        let stream = self.env.dial(&self.host, self.port).await;
        let stream = TokioIo::new(stream.map_err(|error| unreachable(&error))?);
        let mut protocol = http1::Builder::new();
        protocol.max_buf_size(HEAD_MAX_BYTES);
        let opened = protocol.handshake(stream).await;
        let (requests, io) = opened.map_err(|error| unreachable(&error))?;
        let io = async move {
            // Whoever waits for an answer learns why the connection ended.
            let _ended = io.await;
        };
        Ok(Connection {
            requests,
            _io: self.env.spawn(io),
        })
    }

    fn pop(&self) -> Option<Connection> {
        self.idle.lock().pop()
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !connection.requests.is_closed() {
            idle.push(connection);
        }
    }
}

impl Connection {
    async fn carry(&mut self, request: Request<Full<Bytes>>) -> hyper::Result<Response<Incoming>> {
        self.requests.ready().await?;
        self.requests.send_request(request).await
    }
}

async fn read(response: Response<Incoming>) -> Result<Answer, LockProblem> {
    let status = response.status();
    let index = response.headers().get("X-Consul-Index");
    let index = index.and_then(|index| index.to_str().ok()?.parse().ok());
    let announced = response.body().size_hint().lower();
    if announced > ANSWER_MAX_BYTES as u64 {
        let why = format!("an answer of {announced} bytes");
        return Err(LockProblem::BadAnswer(why));
    }
    let body = Limited::new(response.into_body(), ANSWER_MAX_BYTES);
    let body = body.collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => problem_of(&error),
        Err(too_long) => LockProblem::BadAnswer(too_long.to_string()),
    })?;
    Ok(Answer {
        status,
        index: index.unwrap_or(0),
        body: body.to_bytes(),
    })
}

impl Answer {
    /// Returns the body, or why the request was refused.
    pub(super) fn json(&self) -> Result<Value, LockProblem> {
        match self.status.is_success() {
            true => self.any_json(),
            false => Err(refusal(self.status, &self.body)),
        }
    }

    /// Returns the body whatever the status says.
    pub(super) fn any_json(&self) -> Result<Value, LockProblem> {
        serde_json::from_slice(&self.body)
            .map_err(|error| LockProblem::BadAnswer(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Result<Agent, LockProblem> {
        Agent::at(address, ConsulSettings::default(), Env::default())
    }

    #[test]
    fn an_address_is_a_host_with_its_port() {
        for (address, node) in [
            ("127.0.0.1:6", "127.0.0.1:6"),
            ("consul", "consul:8500"),
            ("http://consul:7", "consul:7"),
            ("http://consul:7/", "consul:7"),
            ("[::1]:6", "[::1]:6"),
        ] {
            assert_eq!(at(address).ok().unwrap().node(), node);
        }
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_its_password() {
        for address in [
            "",
            "not an address",
            "h:x",
            "h:",
            "h:1:2",
            "redis://h:1",
            "http://h:1/path",
            "http://me:s3cret@h:1",
        ] {
            let refused = at(address).err().expect(address);
            assert!(matches!(refused, LockProblem::BadAddress { .. }));
            assert!(!refused.to_string().contains("s3cret"), "{refused}");
        }
    }
}
