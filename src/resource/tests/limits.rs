//! The bounds on what a client can make the resource hold.

use super::super::commit::CommitThread;
use super::super::http::{App, router};
use super::super::limits::MAX_WRITES;
use super::super::metrics::Metrics;
use super::*;
use bounded_io::serve::{MAX_HEADERS, serve};
use socket2::SockRef;
use std::io::ErrorKind;
use std::mem::MaybeUninit;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(20);

/// Reads until this text is there.
async fn expect(stream: &mut TcpStream, text: &str) {
    let mut answer = Vec::new();
    let read = async {
        while !String::from_utf8_lossy(&answer).contains(text) {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0, "{text}");
        }
    };
    timeout(PATIENCE, read).await.expect(text);
}

#[tokio::test]
async fn a_body_is_not_read_before_there_is_a_place_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path(), |_: crate::model::LogRow| ()).unwrap();
    let metrics = Arc::new(Metrics::new(Fence::On));
    let log_path = log.path().to_owned();
    let (committer, _thread) =
        CommitThread::start(log, State::new(Fence::On), metrics.clone()).unwrap();
    let mut places = Vec::new();
    for _ in 0..MAX_WRITES {
        places.push(committer.place().await.unwrap());
    }
    let app = App {
        committer,
        metrics,
        log_path,
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stopping = CancellationToken::new();
    let _stop = stopping.clone().drop_guard();
    tokio::spawn(serve(listener, router(app), stopping));

    let mut writer = TcpStream::connect(address).await.unwrap();
    let head = b"PUT /r/k HTTP/1.1\r\nhost: x\r\nx-fence-token: 1\r\n\
        content-length: 1\r\nexpect: 100-continue\r\n\r\n";
    writer.write_all(head).await.unwrap();
    // A later request of somebody else is answered, also one that asks the commit thread.
    let mut reader = TcpStream::connect(address).await.unwrap();
    let request = b"GET /r/k HTTP/1.1\r\nhost: x\r\n\r\n";
    reader.write_all(request).await.unwrap();
    expect(&mut reader, "nothing has been written").await;
    // This asks the kernel: `try_read` fails as long as the runtime has not seen an event.
    let early = SockRef::from(&writer).peek(&mut [MaybeUninit::uninit()]);
    let early = early.unwrap_err();
    assert_eq!(early.kind(), ErrorKind::WouldBlock, "the body is asked for");

    places.pop();
    expect(&mut writer, "100 Continue").await;
    writer.write_all(b"v").await.unwrap();
    expect(&mut writer, "200 OK").await;
}

#[tokio::test]
async fn too_many_headers_are_refused() {
    let (_dir, server) = Server::fresh(Fence::On).await;
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let headers = "x: y\r\n".repeat(MAX_HEADERS + 1);
    let request = format!("GET /healthz HTTP/1.1\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    expect(&mut stream, "HTTP/1.1 431").await;
    server.stop().await;
}
