//! A stream of a server's answers that limits the length of each.
//!
//! Client libraries take an answer of any length into memory. So this checks the bytes before
//! they are read.

use crate::env::Dialed;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The limits of a protocol.
pub(crate) trait Frames: Default + Unpin {
    /// Looks at the next bytes that the server sent. An error ends the stream.
    fn feed(&mut self, bytes: &[u8]) -> io::Result<()>;
}

pub(crate) struct Bounded<F> {
    stream: Dialed,
    frames: F,
}

impl<F: Frames> Bounded<F> {
    pub(crate) fn new(stream: Dialed) -> Bounded<F> {
        let frames = F::default();
        Bounded { stream, frames }
    }
}

impl<F: Frames> AsyncRead for Bounded<F> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buffer))?;
        Poll::Ready(this.frames.feed(&buffer.filled()[before..]))
    }
}

impl<F: Frames> AsyncWrite for Bounded<F> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
