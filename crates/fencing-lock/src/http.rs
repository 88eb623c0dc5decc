use crate::task::Task;
use crate::{Env, LockProblem};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// HTTP/1.1 connections to one server. Each carries one request at a time, so no answer is
/// taken for another's; those that the server keeps open are used again.
pub(crate) struct Http {
    host: String,
    port: u16,
    connect_timeout: Duration,
    pub(crate) env: Env,
    pub(crate) requests: Counter,
    idle: Mutex<Vec<Connection>>,
}

struct Connection {
    sender: SendRequest<Full<Bytes>>,
    _driver: Task,
}

const IDLE_MAX: usize = 32;
/// A list of many locks, and a page of a stream, are much shorter.
const ANSWER_MAX_BYTES: usize = 16 * 1024 * 1024;
const HEAD_MAX_BYTES: usize = 64 * 1024;
const LOOKS: u32 = 10;

impl Http {
    pub(crate) fn new((host, port): (String, u16), connect_timeout: Duration, env: Env) -> Http {
        Http {
            host,
            port,
            connect_timeout,
            env,
            requests: Counter::default(),
            idle: Mutex::default(),
        }
    }

    /// Sends the request, and returns the whole answer if it comes within `limit`.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
    ) -> Result<Response<Bytes>, LockProblem> {
        loop {
            let idle = self.take_idle();
            let is_new = idle.is_none();
            let mut connection = match idle {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            self.requests.inc();
            let answer = within(limit, async {
                let response = connection.sender.send_request(request.clone()).await?;
                read(response).await
            });
            match answer.await {
                None => {
                    let limit_ms = limit.as_millis();
                    return Err(LockProblem::NoAnswer(format!("not within {limit_ms} ms")));
                }
                // The server had closed an idle connection before the request was sent.
                Some(Err(AnswerError::Http(error))) if error.is_canceled() && !is_new => {}
                Some(Err(error)) => return Err(error.into()),
                Some(Ok(answer)) => {
                    self.put_back(connection);
                    return Ok(answer);
                }
            }
        }
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        idle.retain(|connection| connection.sender.is_ready());
        idle.pop()
    }

    fn put_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX && !connection.sender.is_closed() {
            idle.push(connection);
        }
    }

    async fn connect(&self) -> Result<Connection, LockProblem> {
        let limit = self.connect_timeout;
        let connected = timeout(limit, self.open()).await.unwrap_or_else(|_| {
            let limit_ms = limit.as_millis();
            Err(format!("no connection within {limit_ms} ms"))
        });
        connected.map_err(LockProblem::Unreachable)
    }

    async fn open(&self) -> Result<Connection, String> {
        let stream = self.env.dial(&self.host, self.port).await;
        let stream = TokioIo::new(stream.map_err(|error| error.to_string())?);
        let mut protocol = http1::Builder::new();
        protocol.max_buf_size(HEAD_MAX_BYTES);
        let opened = protocol.handshake(stream).await;
        let (mut sender, driver) = opened.map_err(|error| error.to_string())?;
        let driver = self.env.spawn(async move {
            // The request that waits for an answer learns why the connection ended.
            let _ended = driver.await;
        });
        sender.ready().await.map_err(|error| error.to_string())?;
        Ok(Connection {
            sender,
            _driver: driver,
        })
    }
}

/// Returns the result, or `None` if it has not come by the limit.
///
/// It counts looks, and not time: a process that was stopped finds its timers before the
/// answers that came meanwhile, and one look more lets it hear them.
async fn within<T>(limit: Duration, request: impl Future<Output = T>) -> Option<T> {
    let every = (limit / LOOKS).max(Duration::from_millis(1));
    let mut request = pin!(request);
    for _look in 0..=LOOKS {
        tokio::select! {
            biased;
            answer = &mut request => return Some(answer),
            () = sleep(every) => {}
        }
    }
    None
}

/// Reasons why an answer could not be read.
enum AnswerError {
    Http(hyper::Error),
    TooLong(String),
}

impl From<hyper::Error> for AnswerError {
    fn from(error: hyper::Error) -> AnswerError {
        AnswerError::Http(error)
    }
}

/// An answer that is not HTTP, or too long, comes from another kind of server. Every other
/// error is the end of the connection.
impl From<AnswerError> for LockProblem {
    fn from(error: AnswerError) -> LockProblem {
        match error {
            AnswerError::TooLong(words) => LockProblem::BadAnswer(words),
            AnswerError::Http(error) => {
                let cause = std::error::Error::source(&error);
                let words = cause.map_or(error.to_string(), |cause| format!("{error}: {cause}"));
                match error.is_parse() {
                    true => LockProblem::BadAnswer(words),
                    false => LockProblem::NoAnswer(words),
                }
            }
        }
    }
}

async fn read(response: Response<Incoming>) -> Result<Response<Bytes>, AnswerError> {
    let (head, body) = response.into_parts();
    let announced = body.size_hint().lower();
    if announced > ANSWER_MAX_BYTES as u64 {
        let words = format!("an answer of {announced} bytes");
        return Err(AnswerError::TooLong(words));
    }
    let body = Limited::new(body, ANSWER_MAX_BYTES).collect().await;
    let body = body.map_err(|error| match error.downcast::<hyper::Error>() {
        Ok(error) => AnswerError::Http(*error),
        Err(too_long) => AnswerError::TooLong(too_long.to_string()),
    })?;
    Ok(Response::from_parts(head, body.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    const LIMIT: Duration = Duration::from_secs(2);

    /// One limit is for head and body together, and not for each.
    #[tokio::test]
    async fn an_answer_whose_body_does_not_end_is_given_up_at_the_limit() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let _asked = stream.read(&mut [0; 1024]).await.unwrap();
            sleep(LIMIT * 6 / 10).await;
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{";
            stream.write_all(head).await.unwrap();
            // It ends when the client has gone.
            let _gone = stream.read(&mut [0; 1024]).await;
        });
        let http = Http::new(("127.0.0.1".to_owned(), port), LIMIT, Env::default());
        let asked = Instant::now();
        let request = Request::get("/").body(Full::default()).unwrap();
        let answer = http.send(request, LIMIT).await;
        let waited = asked.elapsed();
        assert!(
            matches!(answer, Err(LockProblem::NoAnswer(_))),
            "{answer:?}"
        );
        assert!(waited >= LIMIT && waited < LIMIT * 15 / 10, "{waited:?}");
        timeout(LIMIT * 10, server).await.unwrap().unwrap();
    }
}
