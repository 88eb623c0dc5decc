//! The server in this process, over real sockets.

mod api;
mod bad_requests;
mod link;
mod lives;
mod many;
mod streams;

use super::{LogLevel, Opened, Settings, open};
use crate::toxiproxy::{NewProxy, Proxy, Stream, Toxic, ToxicKind, ToxiproxyClient};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// Far more than anything here takes, and far less than a stuck connection.
pub const SOON: Duration = Duration::from_secs(10);
/// Long enough for a byte that may pass to have passed.
pub const A_WHILE: Duration = Duration::from_millis(200);

pub struct Kit {
    pub client: ToxiproxyClient,
    pub base: String,
    stop: Option<oneshot::Sender<()>>,
    served: JoinHandle<()>,
}

impl Kit {
    pub async fn new() -> Kit {
        Kit::with(Settings::default()).await
    }

    pub async fn with(settings: Settings) -> Kit {
        let settings = Settings {
            log: LogLevel::Off,
            ..settings
        };
        let opened: Opened = open(settings).await.expect("an open server");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let (stop, stopped) = oneshot::channel();
        let served = tokio::spawn(async move {
            let stopped = async { drop(stopped.await) };
            opened.serve(listener, stopped).await;
        });
        Kit {
            client: ToxiproxyClient::new(&base, SOON).expect("an address"),
            base,
            stop: Some(stop),
            served,
        }
    }

    pub async fn proxy(&self, name: &str, upstream: &str) -> Proxy {
        let proxy = self.client.create(&new_proxy(name, upstream)).await;
        proxy.expect("a new proxy")
    }

    pub async fn add(&self, stream: Stream, kind: ToxicKind) -> Toxic {
        let toxic = Toxic::new(stream, kind);
        let added = self.client.add_toxic("p", &toxic).await;
        added.expect("a new toxic")
    }

    pub async fn remove(&self, toxic: &Toxic) {
        let removed = self.client.remove_toxic("p", &toxic.name).await;
        removed.expect("it was there");
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        let served = timeout(SOON, &mut self.served).await;
        served.expect("it stops soon").expect("and well");
    }
}

pub fn new_proxy(name: &str, upstream: &str) -> NewProxy {
    NewProxy {
        name: name.into(),
        listen: "127.0.0.1:0".into(),
        upstream: upstream.into(),
        enabled: true,
    }
}

/// A server that says everything back, prefixed once per connection.
pub struct Echo {
    pub address: String,
    _task: AbortOnDropHandle<()>,
}

pub async fn echo(prefix: &'static str) -> Echo {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let task = tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                client.write_all(prefix.as_bytes()).await?;
                let (mut read, mut write) = client.split();
                tokio::io::copy(&mut read, &mut write).await
            });
        }
    });
    Echo {
        address,
        _task: AbortOnDropHandle::new(task),
    }
}

/// A proxy `p` to an echo, and one connection through it that is known to work.
pub async fn through_p(kit: &Kit) -> (Echo, Proxy, TcpStream) {
    let echo = echo("").await;
    let proxy = kit.proxy("p", &echo.address).await;
    let mut stream = connect(&proxy).await;
    ping(&mut stream).await;
    (echo, proxy, stream)
}

pub async fn connect(proxy: &Proxy) -> TcpStream {
    let connected = timeout(SOON, TcpStream::connect(&proxy.listen)).await;
    connected.expect("it answers").expect("it listens")
}

pub async fn ping(stream: &mut TcpStream) {
    stream.write_all(b"ping").await.expect("written");
    assert_eq!(read_text(stream, 4).await, "ping");
}

pub async fn read_text(stream: &mut TcpStream, bytes: usize) -> String {
    let mut text = vec![0; bytes];
    let read = timeout(SOON, stream.read_exact(&mut text)).await;
    read.expect("bytes arrive").expect("the stream goes on");
    String::from_utf8(text).expect("text")
}

/// How a connection ends, once all that arrives is read.
pub async fn end_of(stream: &mut TcpStream) -> (Vec<u8>, Option<std::io::ErrorKind>) {
    let mut rest = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut rest)).await;
    let error = read.expect("it ends soon").err();
    (rest, error.map(|error| error.kind()))
}

/// Nothing arrives for a while, and the connection is not closed either.
pub async fn is_silent(stream: &mut TcpStream) {
    let mut byte = [0];
    let read = timeout(A_WHILE, stream.read(&mut byte)).await;
    assert!(read.is_err(), "{read:?} {byte:?}");
}
