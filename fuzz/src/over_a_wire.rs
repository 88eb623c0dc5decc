//! What comes over a connection: real servers and clients of ours on loopback, and
//! somebody who says anything.

use fencepost::model::Fence;
use fencepost::resource;
use fencepost::services;
use fencepost::services::{Backend, LockOptions};
use fencepost::worker::{WorkerTask, run_with};
use fencing_lock::{self, LockClient, LockMetrics, LockSettings};
use std::future::pending;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{self, Runtime};
use tokio::sync::mpsc;
use tokio::time::timeout;
use toxiproxy_server as toxiproxy;
use toxiproxy_server::server::LogLevel;

/// Nobody who is alive takes this long, on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// For an answer that may never come.
const SHORT: Duration = Duration::from_millis(20);
const ANY_PORT: &str = "127.0.0.1:0";
/// A body that follows a log has no end.
const ENOUGH: u64 = 1 << 20;

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Runtime::new().expect("a runtime"))
}

/// Bytes to the protected resource.
pub fn resource_http(input: &[u8]) {
    static SERVER: OnceLock<(SocketAddr, TempDir)> = OnceLock::new();
    let (address, _) = SERVER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let config = resource::Config::new(Fence::On, folder.path().join("data"));
        let opened = resource::open(config).expect("a resource");
        let listener = listener();
        let address = listener.local_addr().expect("an address");
        runtime().spawn(opened.serve(listener, pending()));
        (address, folder)
    });
    runtime().block_on(say(*address, input));
    runtime().block_on(is_alive(*address, "/healthz"));
}

/// Bytes to the API of Toxiproxy. Nothing is sent through the proxies that it
/// makes, and they are gone afterwards.
pub fn toxiproxy_http(input: &[u8]) {
    runtime().block_on(async {
        let opened = toxiproxy::server::open(toxiproxy::server::Settings {
            log: LogLevel::Off,
            ..Default::default()
        });
        let opened = opened.await.expect("a server");
        let listener = TcpListener::bind(ANY_PORT).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let serving = tokio::spawn(opened.serve(listener, stopped));
        say(address, input).await;
        is_alive(address, "/version").await;
        drop(stop);
        let ended = timeout(PATIENCE, serving).await.expect("it ends in time");
        ended.expect("no panic");
    });
}

fn listener() -> TcpListener {
    runtime()
        .block_on(TcpListener::bind(ANY_PORT))
        .expect("a port")
}

/// Says it, says no more, and reads what is answered until the end, or until
/// the server waits for the rest of what was said.
async fn say(address: SocketAddr, input: &[u8]) {
    let mut connection = TcpStream::connect(address).await.expect("a connection");
    // Whoever has been refused may find the connection closed.
    let _ = connection.write_all(input).await;
    let _ = connection.shutdown().await;
    let mut answer = Vec::new();
    let mut connection = connection.take(ENOUGH);
    let _ = timeout(SHORT, connection.read_to_end(&mut answer)).await;
}

async fn is_alive(address: SocketAddr, path: &str) {
    let asked = async {
        let mut connection = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        connection.write_all(request.as_bytes()).await?;
        let mut answer = Vec::new();
        connection.take(ENOUGH).read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(PATIENCE, asked).await.expect("an answer in time");
    let answer = answer.expect("an answer");
    assert!(
        answer.starts_with(b"HTTP/1.1 200"),
        "{:?}",
        String::from_utf8_lossy(&answer)
    );
}

/// Lines on the stdin of a worker that waits at its first gate.
pub fn worker_lines(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    // On this thread alone, where a test catches what the worker complains about.
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let (say, heard) = mpsc::channel(1);
        let harness = async {
            for line in lines {
                // A worker that was let through its gate may be over already.
                if say.send(line.to_owned()).await.is_err() {
                    break;
                }
            }
            drop(say);
        };
        let worker = timeout(PATIENCE, run_with(task(), heard, std::io::sink()));
        let (_, ended) = tokio::join!(harness, worker);
        let ended = ended.expect("it ends in time");
        ended.expect("it was told to stop, or is done");
    });
}

/// One round against servers that are not there, from the first gate on.
fn task() -> WorkerTask {
    #[derive(clap::Parser)]
    struct Asked {
        #[command(flatten)]
        task: WorkerTask,
    }
    let words = "worker --gates start --acquire-timeout 1ms --endpoints 127.0.0.1:1 --resource http://127.0.0.1:1";
    let asked: Asked = clap::Parser::parse_from(words.split(' '));
    asked.task
}

/// Answers of a Redis that is none: each command is answered with the next part
/// of the input, parts being split at `\n\n`.
pub fn resp(input: &[u8]) {
    runtime().block_on(async {
        let listener = TcpListener::bind(ANY_PORT).await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let said = input.to_vec();
        let server = tokio::spawn(async move {
            let parts = String::from_utf8_lossy(&said).into_owned();
            let mut parts = parts.split("\n\n").map(str::to_owned).cycle();
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut asked = [0; 4096];
                // A client that is content with nothing is left after so many words.
                for _ in 0..32 {
                    let Ok(1..) = connection.read(&mut asked).await else {
                        break;
                    };
                    let part = parts.next().unwrap_or_default();
                    if connection.write_all(part.as_bytes()).await.is_err() {
                        break;
                    }
                }
            }
        });
        let options = LockOptions {
            backend: Backend::Redis,
            ..LockOptions::default()
        };
        let backend = services::open(
            &options,
            &[address.to_string()],
            None,
            fencing_lock::Env::default(),
        )
        .expect("a backend");
        let settings = LockSettings {
            ttl: Duration::from_secs(2),
            seed: 1,
        };
        let client = LockClient::new(backend, settings, LockMetrics::default()).expect("a client");
        // Granted or not, released or not; half an answer is waited for in vain.
        if let Ok(Ok(Some(lease))) = timeout(SHORT, client.try_acquire("key")).await {
            let _ = timeout(SHORT, lease.release()).await;
        }
        server.abort();
    });
}
