use super::{MAX_HEAD_BYTES, MAX_HEADERS};
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::io::InspectReader;
use tokio_util::sync::CancellationToken;
use tower_service::Service;

/// The connections without a request that is being answered, the longest idle first.
#[derive(Default)]
pub(super) struct IdleConnections {
    open: Mutex<BTreeMap<u64, CancellationToken>>,
    next: AtomicU64,
    came: Notify,
}

impl IdleConnections {
    pub fn close_longest(&self) {
        if let Some((_, closing)) = self.open.lock().pop_first() {
            closing.cancel();
        }
    }

    /// Completes when another connection has become idle after this call.
    pub fn somebody(&self) -> impl Future<Output = ()> + '_ {
        self.came.notified()
    }

    fn enter(&self, closing: &CancellationToken) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, closing.clone());
        self.came.notify_waiters();
        number
    }

    fn leave(&self, number: u64) {
        self.open.lock().remove(&number);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// A part of a request has come; the rest has to come before `due`.
    Head {
        due: Instant,
    },
    Answering,
}

pub(super) struct Connection {
    idle: Arc<IdleConnections>,
    /// Its number among the idle connections.
    number: AtomicU64,
    closing: CancellationToken,
    phase: watch::Sender<Phase>,
    head_deadline: Duration,
}

impl Connection {
    pub fn new(idle: Arc<IdleConnections>, head_deadline: Duration) -> Connection {
        let closing = CancellationToken::new();
        Connection {
            number: AtomicU64::new(idle.enter(&closing)),
            idle,
            closing,
            phase: watch::Sender::new(Phase::Idle),
            head_deadline,
        }
    }

    pub async fn serve(self, stream: TcpStream, router: Router, stopping: CancellationToken) {
        let connection = Arc::new(self);
        let listening = connection.clone();
        let stream = InspectReader::new(stream, move |bytes: &[u8]| {
            if !bytes.is_empty() {
                listening.hears();
            }
        });
        let answering = connection.clone();
        let service = service_fn(move |request| answer(answering.clone(), router.clone(), request));
        let served = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_header_size(MAX_HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service);
        let mut served = pin!(served);
        tokio::select! {
            // A problem of a connection concerns only its client.
            _ = served.as_mut() => {}
            () = connection.head_is_late() => {}
            () = connection.closing.cancelled() => {}
            () = stopping.cancelled() => {
                if *connection.phase.borrow() == Phase::Answering {
                    served.as_mut().graceful_shutdown();
                    let _ = served.await;
                }
            }
        }
    }

    fn hears(&self) {
        let due = Instant::now() + self.head_deadline;
        self.phase.send_if_modified(|phase| {
            let begins = *phase == Phase::Idle;
            if begins {
                *phase = Phase::Head { due };
            }
            begins
        });
    }

    fn begins(&self) {
        self.idle.leave(self.number.load(Ordering::Relaxed));
        self.phase.send_replace(Phase::Answering);
    }

    fn is_done(&self) {
        let number = self.idle.enter(&self.closing);
        self.number.store(number, Ordering::Relaxed);
        self.phase.send_replace(Phase::Idle);
    }

    async fn head_is_late(&self) {
        let mut phases = self.phase.subscribe();
        loop {
            let phase = *phases.borrow_and_update();
            tokio::select! {
                () = late(phase) => return,
                _ = phases.changed() => {}
            }
        }
    }
}

async fn late(phase: Phase) {
    match phase {
        Phase::Head { due } => sleep_until(due).await,
        Phase::Idle | Phase::Answering => std::future::pending().await,
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.idle.leave(*self.number.get_mut());
    }
}

/// One request, until the last byte of its answer was handed over.
struct Answering(Arc<Connection>);

impl Answering {
    fn begin(connection: Arc<Connection>) -> Answering {
        connection.begins();
        Answering(connection)
    }
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.is_done();
    }
}

async fn answer(
    connection: Arc<Connection>,
    mut router: Router,
    request: Request<Incoming>,
) -> Result<Response, Infallible> {
    let answering = Answering::begin(connection);
    let response = router.call(request.map(Body::new)).await?;
    Ok(response.map(|body| {
        Body::new(body.map_err(move |error| {
            let _until_the_body_is_dropped = &answering;
            error
        }))
    }))
}
