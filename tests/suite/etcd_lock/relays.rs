//! Relays between a client and the members. They pass requests on, until a test tells them to
//! treat some of them in another way.

use super::kit::{SECOND, members};
use crate::support::stranger;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// Longer than anything takes that a test waits for.
const PATIENCE: Duration = SECOND.saturating_mul(60);

type Body = BoxBody<Bytes, hyper::Error>;
type Rule = Box<dyn Fn(usize, &str) -> Treatment + Send>;

#[derive(Clone, Copy)]
pub enum Treatment {
    PassOn,
    /// The caller hears nothing. The member gets the request when the test lets it go, even if
    /// the caller has given it up.
    HoldBack,
    /// The caller hears that its lease is prolonged, as from a leader that does not know of the
    /// next one. The member hears nothing.
    Prolong,
    /// The member carries the request out, and the caller hears that the server stopped.
    StopBeforeTheAnswer,
}

/// One relay for each of some members.
pub struct Relays {
    pub addresses: Vec<String>,
    state: Arc<RelayState>,
}

struct RelayState {
    rule: Mutex<Rule>,
    log: watch::Sender<Log>,
}

/// Methods of requests.
#[derive(Default)]
struct Log {
    came: Vec<String>,
    /// Those that are held back now.
    held: Vec<String>,
    answered: Vec<String>,
    let_go: Vec<String>,
}

impl Relays {
    pub async fn to_all() -> Relays {
        Relays::to(&members()).await
    }

    pub async fn to(members: &[String]) -> Relays {
        let state = Arc::new(RelayState {
            rule: Mutex::new(Box::new(|_, _| Treatment::PassOn)),
            log: watch::Sender::new(Log::default()),
        });
        let mut addresses = Vec::new();
        for (index, member) in members.iter().cloned().enumerate() {
            let state = state.clone();
            let serve = move |stream| serve(stream, index, member.clone(), state.clone());
            addresses.push(stranger(serve).await);
        }
        Relays { addresses, state }
    }

    /// Treats requests from now on as the rule says, by the index of the member and the method.
    pub fn treat(&self, rule: impl Fn(usize, &str) -> Treatment + Send + 'static) {
        *self.state.rule.lock().unwrap() = Box::new(rule);
    }

    /// Treats the first request of this method so, and passes all others on.
    pub fn treat_first(&self, method: &'static str, treatment: Treatment) {
        let is_next = AtomicBool::new(true);
        self.treat(move |_, came| {
            if came == method && is_next.swap(false, Ordering::Relaxed) {
                treatment
            } else {
                Treatment::PassOn
            }
        });
    }

    /// Answers nothing any more.
    pub fn fall_silent(&self) {
        self.treat(|_, _| Treatment::HoldBack);
    }

    pub fn answered(&self, method: &str) -> usize {
        count(&self.state.log.borrow().answered, method)
    }

    /// Waits until so many requests of this method have come.
    pub async fn until_came(&self, method: &str, number: usize) {
        let reached = |log: &Log| count(&log.came, method) >= number;
        self.until(reached, &format!("{number} {method} came"))
            .await;
    }

    /// Waits until so many requests of this method are held back.
    pub async fn until_held(&self, method: &str, number: usize) {
        let reached = |log: &Log| count(&log.held, method) >= number;
        self.until(reached, &format!("{number} {method} are held"))
            .await;
    }

    /// Waits until so many requests of this method were answered by members.
    pub async fn until_answered(&self, method: &str, number: usize) {
        let reached = |log: &Log| count(&log.answered, method) >= number;
        let what = format!("{number} {method} are answered");
        self.until(reached, &what).await;
    }

    /// Lets the requests of this method go, and waits until the members have answered them.
    pub async fn let_go(&self, method: &str) {
        let log = &self.state.log;
        log.send_modify(|log| log.let_go.push(method.to_owned()));
        let reached = |log: &Log| count(&log.held, method) == 0;
        self.until(reached, &format!("no {method} is held")).await;
    }

    async fn until(&self, reached: impl FnMut(&Log) -> bool, what: &str) {
        let mut log = self.state.log.subscribe();
        let reached = timeout(PATIENCE, log.wait_for(reached)).await;
        assert!(reached.is_ok(), "waited in vain until {what}");
    }
}

fn count(methods: &[String], method: &str) -> usize {
    methods.iter().filter(|one| *one == method).count()
}

async fn serve(stream: TcpStream, index: usize, member: String, state: Arc<RelayState>) {
    let Ok(upstream) = TcpStream::connect(member).await else {
        return;
    };
    let connected = handshake(TokioExecutor::new(), TokioIo::new(upstream)).await;
    let Ok((member, connection)) = connected else {
        return;
    };
    tokio::spawn(connection);
    let treat = service_fn(|request| treat(request, index, member.clone(), state.clone()));
    let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let _ended = server.serve_connection(TokioIo::new(stream), treat).await;
}

async fn treat(
    request: Request<Incoming>,
    index: usize,
    mut member: SendRequest<Body>,
    state: Arc<RelayState>,
) -> Result<Response<Body>, hyper::Error> {
    let path = request.uri().path();
    let method = path.rsplit('/').next().unwrap_or_default().to_owned();
    state.log.send_modify(|log| log.came.push(method.clone()));
    let treatment = (state.rule.lock().unwrap())(index, &method);
    match treatment {
        Treatment::PassOn => {
            let answer = member.send_request(request.map(BodyExt::boxed)).await?;
            state.log.send_modify(|log| log.answered.push(method));
            Ok(answer.map(BodyExt::boxed))
        }
        Treatment::HoldBack => {
            // Not here: this future is dropped with its caller.
            tokio::spawn(hold_back(request, member, state, method));
            std::future::pending().await
        }
        Treatment::Prolong => prolong(request.into_body()).await,
        Treatment::StopBeforeTheAnswer => {
            let answer = member.send_request(request.map(BodyExt::boxed)).await?;
            answer.into_body().collect().await?;
            let stopped = grpc()
                .header("grpc-status", "14")
                .header("grpc-message", "etcdserver: server stopped");
            Ok(stopped.body(body(Vec::new())).unwrap())
        }
    }
}

async fn hold_back(
    request: Request<Incoming>,
    mut member: SendRequest<Body>,
    state: Arc<RelayState>,
    method: String,
) -> Result<(), hyper::Error> {
    let (head, whole) = request.into_parts();
    let whole = body(whole.collect().await?.to_bytes());
    state.log.send_modify(|log| log.held.push(method.clone()));
    let mut log = state.log.subscribe();
    drop(log.wait_for(|log| log.let_go.contains(&method)).await);
    let answer = member
        .send_request(Request::from_parts(head, whole))
        .await?;
    // A refusal is an answer, too.
    answer.into_body().collect().await?;
    state.log.send_modify(|log| {
        let held = log.held.iter().position(|held| *held == method);
        log.answered
            .push(log.held.swap_remove(held.expect("it is held")));
    });
    Ok(())
}

/// Answers two keep-alives of one stream with a TTL of an hour, in the term of long ago.
async fn prolong(mut request: Incoming) -> Result<Response<Body>, hyper::Error> {
    let asked = request.frame().await.transpose()?;
    let asked = asked.and_then(|frame| frame.into_data().ok());
    // The five bytes before a message have its length; field 1 of the message is the lease.
    let lease = asked.expect("a keep-alive").slice(6..);
    let (header, ttl) = ([0x0a, 2, 0x20, 1], [0x18, 0x90, 0x1c]);
    let message = [&header, &[0x10][..], &lease, &ttl].concat();
    let length = u8::try_from(message.len()).expect("a short message");
    let answer = [&[0, 0, 0, 0, length], &message[..]].concat();
    Ok(grpc().body(body(answer.repeat(2))).unwrap())
}

fn grpc() -> hyper::http::response::Builder {
    Response::builder().header("content-type", "application/grpc")
}

fn body(whole: impl Into<Bytes>) -> Body {
    let whole = Full::new(whole.into());
    whole.map_err(|never: Infallible| match never {}).boxed()
}
