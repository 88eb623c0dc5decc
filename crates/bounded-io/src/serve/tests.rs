use super::*;
use axum::routing::{MethodRouter, get};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const PATIENCE: Duration = Duration::from_secs(20);
const REQUEST: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n";

struct Server {
    address: std::net::SocketAddr,
    stopping: CancellationToken,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(connections: usize, head: Duration, router: Router) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stopping = CancellationToken::new();
        let limits = Limits { connections, head };
        let task = tokio::spawn(serve_within(limits, listener, router, stopping.clone()));
        Server {
            address,
            stopping,
            task,
        }
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn stop(self) {
        self.stopping.cancel();
        timeout(PATIENCE, self.task).await.expect("ends").unwrap();
    }
}

fn healthy() -> Router {
    Router::new().route("/healthz", get(|| async { "ok\n" }))
}

/// Makes a route that reports when it is asked, and answers when `true` is sent.
fn slow() -> (MethodRouter, mpsc::Receiver<()>, watch::Sender<bool>) {
    let (begun, has_begun) = mpsc::channel(1);
    let (go_on, goes_on) = watch::channel(false);
    let slow = get(move || {
        let (begun, mut goes_on) = (begun.clone(), goes_on.clone());
        async move {
            begun.send(()).await.unwrap();
            goes_on.wait_for(|go| *go).await.unwrap();
            "ok\n"
        }
    });
    (slow, has_begun, go_on)
}

async fn begun(mut has_begun: mpsc::Receiver<()>) {
    let asked = timeout(PATIENCE, has_begun.recv()).await;
    asked.expect("asked in time").unwrap();
}

async fn ask(stream: &mut TcpStream) -> String {
    stream.write_all(REQUEST).await.unwrap();
    let mut answer = Vec::new();
    let whole = async {
        while !answer.ends_with(b"ok\n") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
    };
    timeout(PATIENCE, whole).await.expect("an answer");
    String::from_utf8(answer).unwrap()
}

/// Returns when the other side has closed the connection.
async fn closed(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    // A reset ends it as well.
    let _ = end.expect("it is closed in time");
}

#[tokio::test]
async fn whoever_merely_holds_connections_shuts_nobody_out() {
    let server = Server::start(8, PATIENCE, healthy()).await;
    let mut held = Vec::new();
    for count in 0..200 {
        let mut stream = server.connect().await;
        // Half of them send a part of a request.
        if count % 2 == 0 {
            let _ = stream.write_all(b"GET /healthz HT").await;
        }
        held.push(stream);
    }
    let mut client = server.connect().await;
    assert!(ask(&mut client).await.starts_with("HTTP/1.1 200"));
    closed(&mut held[0]).await;
    // A connection in use is not the first to be closed.
    drop(server.connect().await);
    assert!(ask(&mut client).await.contains("content-length: 3"));
    server.stop().await;
}

#[tokio::test]
async fn requests_under_way_are_not_cut_off_for_others() {
    let (slow, has_begun, go_on) = slow();
    let server = Server::start(1, PATIENCE, healthy().route("/slow", slow)).await;
    let mut first = server.connect().await;
    let request = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n";
    first.write_all(request).await.unwrap();
    begun(has_begun).await;

    let mut second = server.connect().await;
    second.write_all(REQUEST).await.unwrap();
    go_on.send(true).unwrap();
    let mut answer = [0; 12];
    first.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    second.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200", "in the place of the idle one");
    server.stop().await;
}

#[tokio::test(start_paused = true)]
async fn half_a_request_has_a_deadline_and_silence_has_none() {
    let server = Server::start(100, HEAD_DEADLINE, healthy()).await;
    let mut silent = server.connect().await;
    let mut kept = server.connect().await;
    ask(&mut kept).await;
    let mut half = server.connect().await;
    half.write_all(&REQUEST[..9]).await.unwrap();
    let began = Instant::now();
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest).await;
    assert!(began.elapsed() >= HEAD_DEADLINE && rest.is_empty());
    sleep(100 * HEAD_DEADLINE).await;
    ask(&mut kept).await;
    ask(&mut silent).await;
    server.stop().await;
}

#[tokio::test]
async fn a_head_without_end_is_refused() {
    let server = Server::start(8, PATIENCE, healthy()).await;
    let many = "x: y\r\n".repeat(MAX_HEADERS + 1);
    let large = format!("x: {}\r\n", "y".repeat(MAX_HEAD_BYTES));
    for headers in [many, large] {
        let mut stream = server.connect().await;
        let request = format!("GET /healthz HTTP/1.1\r\n{headers}\r\n");
        // The server may refuse it before all of it is sent.
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 431");
    }
    server.stop().await;
}

#[tokio::test]
async fn stopping_waits_for_answers_and_not_for_the_idle() {
    let (slow, has_begun, go_on) = slow();
    let server = Server::start(8, PATIENCE, Router::new().route("/healthz", slow)).await;
    let _silent = server.connect().await;
    let mut client = server.connect().await;
    let answer = tokio::spawn(async move { ask(&mut client).await });
    begun(has_begun).await;
    server.stopping.cancel();
    assert!(!server.task.is_finished());
    go_on.send(true).unwrap();
    assert!(answer.await.unwrap().starts_with("HTTP/1.1 200"));
    server.stop().await;
}
