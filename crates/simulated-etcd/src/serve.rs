//! One connection: of a client, of another member, or of somebody who only looks whether it works.

use crate::grpc::{Answers, Requests, broken};
use crate::{Etcd, calls, http1, links};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::server::Builder;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// How HTTP/2 begins, as far as nothing else begins so.
const HTTP2: &[u8; 4] = b"PRI ";
const WINDOW_BYTES: u32 = 1 << 20;
const A_LONG_TIME: Duration = Duration::from_secs(1 << 32);

pub async fn serve<S>(etcd: Etcd, mut stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut first = [0; 4];
    stream.read_exact(&mut first).await?;
    match &first {
        links::GREETING => links::listen(&etcd, stream).await,
        HTTP2 => {
            serve_clients(
                &etcd,
                Rewound {
                    first: &first,
                    stream,
                },
            )
            .await
        }
        _ => http1::answer(&etcd, stream).await,
    }
}

/// Carries out calls beside each other, in this task.
async fn serve_clients<S>(etcd: &Etcd, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut builder = Builder::new();
    // By default h2 forgets streams that were reset after a second of real time, and answers what
    // still comes on them from then on: then two plays would differ.
    builder
        .reset_stream_duration(A_LONG_TIME)
        .max_concurrent_reset_streams(usize::MAX)
        .initial_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    let connection = builder.handshake::<_, Bytes>(stream).await;
    let mut connection = connection.map_err(broken)?;
    let mut calls = FuturesUnordered::new();
    let ended = loop {
        tokio::select! {
            biased;
            called = connection.accept() => match called {
                Some(Ok((request, respond))) => {
                    let (head, body) = request.into_parts();
                    let (requests, answers) = (Requests::new(body), Answers::new(respond));
                    calls.push(calls::answer(etcd, head, requests, answers));
                }
                Some(Err(error)) => break Err(broken(error)),
                None => break Ok(()),
            },
            Some(()) = calls.next() => {}
        }
    };
    // Each sees that its client is gone, and undoes what has to be undone.
    while calls.next().await.is_some() {}
    ended
}

/// A stream of which the first bytes were read already.
struct Rewound<'a, S> {
    first: &'a [u8],
    stream: S,
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, room);
        }
        let count = room.remaining().min(self.first.len());
        let (now, later) = self.first.split_at(count);
        room.put_slice(now);
        self.first = later;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
