//! The connections between members. Each member keeps one to each other, and sends everything over
//! its own: what has to be sent while there is none is lost.

use crate::peer::PeerMessage;
use crate::{Etcd, Peer};
use prost::Message;
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How such a connection begins.
pub const GREETING: &[u8; 4] = b"RAFT";
const DIAL_WITHIN: Duration = Duration::from_secs(2);
const DIAL_AGAIN: Duration = Duration::from_millis(100);
/// A connection on which nothing comes is closed after this, as those of etcd.
const SILENCE: Duration = Duration::from_secs(5);
const MOST_WAITING: usize = 4096;
/// An entry can be as long as the longest request; no message has more than 256 of them.
const MOST_BYTES: usize = 1 << 29;
/// A frame without a message: it is sent back.
const ARE_YOU_THERE: [u8; 4] = [0; 4];

/// Keeps a connection to another member.
pub async fn keep<S, F>(
    etcd: &Etcd,
    to: u64,
    peer: &Peer,
    dial: &impl Fn(String, u16) -> F,
) -> Infallible
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = io::Result<S>>,
{
    loop {
        let dialed = timeout(DIAL_WITHIN, dial(peer.host.clone(), peer.port)).await;
        if let Ok(Ok(stream)) = dialed {
            let (link, messages) = mpsc::channel(MOST_WAITING);
            etcd.change(|state| state.connect(to, link));
            // Whatever ended it, it begins again.
            let _ended = send(stream, messages).await;
            etcd.change(|state| state.disconnect(to));
        }
        sleep(DIAL_AGAIN).await;
    }
}

async fn send<S>(mut stream: S, mut messages: mpsc::Receiver<PeerMessage>) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(GREETING).await?;
    let mut heard_at = Instant::now();
    let mut ask_at = heard_at;
    let mut back = [0; 64];
    loop {
        tokio::select! {
            biased;
            message = messages.recv() => {
                let Some(message) = message else { return Ok(()) };
                let mut frame = (message.encoded_len() as u32).to_be_bytes().to_vec();
                message.encode(&mut frame).map_err(io::Error::other)?;
                in_time(stream.write_all(&frame)).await?;
            }
            read = stream.read(&mut back) => {
                if read? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                heard_at = Instant::now();
            }
            () = sleep_until(ask_at) => {
                in_time(stream.write_all(&ARE_YOU_THERE)).await?;
                ask_at = Instant::now() + SILENCE / 3;
            }
            () = sleep_until(heard_at + SILENCE) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

/// Hears what another member sends over its connection.
pub async fn listen<S>(etcd: &Etcd, mut stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        let mut length = [0; 4];
        in_time(stream.read_exact(&mut length)).await?;
        if length == ARE_YOU_THERE {
            in_time(stream.write_all(&length)).await?;
            continue;
        }
        let length = u32::from_be_bytes(length) as usize;
        if length > MOST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut frame = vec![0; length];
        in_time(stream.read_exact(&mut frame)).await?;
        let message = PeerMessage::decode(frame.as_slice()).map_err(io::Error::other)?;
        etcd.change(|state| state.receive(message));
    }
}

async fn in_time<T>(step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    match timeout(SILENCE, step).await {
        Ok(done) => done,
        Err(_) => Err(io::ErrorKind::TimedOut.into()),
    }
}
