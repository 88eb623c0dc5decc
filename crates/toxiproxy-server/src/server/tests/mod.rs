//! Tests the server in this process, over real sockets.

mod api;
mod bad_requests;
mod link;
mod lives;
mod many;
mod streams;

use super::{LogLevel, Opened, Settings, open};
use crate::{NewProxy, Proxy, ProxyChange, Stream, Toxic, ToxicChange, ToxicKind, ToxiproxyClient};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// This is far more than anything here takes, and far less than a stuck connection.
pub const SOON: Duration = Duration::from_secs(10);
/// A connection that takes longer is held up.
pub const A_WHILE: Duration = Duration::from_millis(200);

pub const fn latency(latency_ms: u64, jitter_ms: u64) -> ToxicKind {
    ToxicKind::Latency {
        latency_ms,
        jitter_ms,
    }
}

pub const fn slicer(average_size: u64, size_variation: u64, delay_us: u64) -> ToxicKind {
    ToxicKind::Slicer {
        average_size,
        size_variation,
        delay_us,
    }
}

pub const fn bandwidth(rate_kb_per_s: u64) -> ToxicKind {
    ToxicKind::Bandwidth { rate_kb_per_s }
}

pub fn enabled(enabled: bool) -> ProxyChange {
    ProxyChange {
        enabled: Some(enabled),
        ..ProxyChange::default()
    }
}

pub fn led_to(upstream: &str) -> ProxyChange {
    ProxyChange {
        upstream: Some(upstream.into()),
        ..ProxyChange::default()
    }
}

/// Returns a listener on this machine, and its address.
pub async fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    (listener, address)
}

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
        let (listener, address) = listener().await;
        let base = format!("http://{address}");
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

    pub async fn update(&self, change: &ProxyChange) -> Proxy {
        let updated = self.client.update("p", change).await;
        updated.expect("it is there")
    }

    pub async fn change(&self, toxic: &Toxic, kind: Option<ToxicKind>, toxicity: Option<f64>) {
        let change = ToxicChange { kind, toxicity };
        let changed = self.client.update_toxic("p", &toxic.name, &change).await;
        changed.expect("it is there");
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

/// A server that echoes everything, with a prefix once per connection.
pub struct Echo {
    pub address: String,
    _task: AbortOnDropHandle<()>,
}

pub async fn echo(prefix: &'static str) -> Echo {
    let (listener, address) = listener().await;
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

/// Makes a proxy `p` to an echo, and one connection through it that is known to work.
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

/// Reads everything that arrives, and returns it with the error that ended the
/// connection.
pub async fn end_of(stream: &mut TcpStream) -> (Vec<u8>, Option<std::io::ErrorKind>) {
    let mut rest = Vec::new();
    let read = timeout(SOON, stream.read_to_end(&mut rest)).await;
    let error = read.expect("it ends soon").err();
    (rest, error.map(|error| error.kind()))
}

/// Asserts that nothing has arrived and that the connection is not closed either,
/// although others have been served since, by the same runtime and through a proxy
/// without toxics.
pub async fn is_silent(kit: &Kit, stream: &TcpStream) {
    let echo = echo("").await;
    let clean = kit.proxy("clean", &echo.address).await;
    let mut other = connect(&clean).await;
    for _ in 0..10 {
        ping(&mut other).await;
    }
    kit.client.delete("clean").await.expect("it was there");
    let mut byte = [0];
    let read = stream.try_read(&mut byte).map_err(|error| error.kind());
    assert_eq!(read, Err(std::io::ErrorKind::WouldBlock), "{byte:?}");
}
