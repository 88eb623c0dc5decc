//! The answer to HTTP/1: the version, with the date by which a wall clock is read.

use crate::Etcd;
use std::io;
use std::time::SystemTime;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

const END: &[u8] = b"\r\n\r\n";

/// Answers each request, whatever it asks for, until the client has closed.
pub async fn answer<S>(etcd: &Etcd, mut stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut received = Vec::new();
    while stream.read_buf(&mut received).await? > 0 {
        while let Some(at) = received.windows(END.len()).position(|it| it == END) {
            received.drain(..at + END.len());
            stream.write_all(page(etcd).as_bytes()).await?;
        }
        // Of a head that is not complete, only its last bytes matter.
        let old = received.len().saturating_sub(END.len() - 1);
        received.drain(..old);
    }
    Ok(())
}

fn page(etcd: &Etcd) -> String {
    let now = SystemTime::UNIX_EPOCH + etcd.state.lock().wall_clock();
    let date = httpdate::fmt_http_date(now);
    let body = format!(r#"{{"etcdserver":"{VERSION}","etcdcluster":"3.5.0"}}"#);
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// The version that it answers like.
pub const VERSION: &str = "3.5.16";
