use crate::reply::Reply;
use crate::{Session, request};
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// What a client that reads nothing can make a server hold.
const UNSENT_BYTES_MAX: usize = 16 << 20;

pub(crate) async fn serve<S>(session: Session, stream: S) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut connection = Connection {
        session,
        stream,
        received: Vec::new(),
        unsent: Vec::new(),
        is_over: false,
    };
    poll_fn(|context| connection.poll(context)).await
}

struct Connection<S> {
    session: Session,
    stream: S,
    received: Vec<u8>,
    unsent: Vec<u8>,
    /// Nothing more is read; the rest is sent.
    is_over: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while self.session.client.outbox.poll(context).is_ready() {
                if self.session.client.outbox.is_over() {
                    return Poll::Ready(Ok(()));
                }
                self.send_messages()?;
            }
            let is_sent = self.poll_unsent(context)?;
            if self.is_over {
                return if is_sent {
                    Poll::Ready(Ok(()))
                } else {
                    Poll::Pending
                };
            }
            if self.poll_received(context)?.is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Returns whether everything is sent.
    fn poll_unsent(&mut self, context: &mut Context<'_>) -> io::Result<bool> {
        while !self.unsent.is_empty() {
            match Pin::new(&mut self.stream).poll_write(context, &self.unsent)? {
                Poll::Ready(0) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(sent) => self.unsent.drain(..sent),
                Poll::Pending => return Ok(false),
            };
        }
        Ok(Pin::new(&mut self.stream).poll_flush(context)?.is_ready())
    }

    fn poll_received(&mut self, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        let mut bytes = [MaybeUninit::uninit(); 4096];
        let mut room = ReadBuf::uninit(&mut bytes);
        if Pin::new(&mut self.stream)
            .poll_read(context, &mut room)?
            .is_pending()
        {
            return Ok(Poll::Pending);
        }
        self.is_over = room.filled().is_empty();
        self.received.extend_from_slice(room.filled());
        loop {
            match request::take(&mut self.received) {
                Ok(None) => return Ok(Poll::Ready(())),
                Ok(Some(words)) => self.run(&words)?,
                Err(error) => {
                    self.send(&Reply::Error(error));
                    self.is_over = true;
                    return Ok(Poll::Ready(()));
                }
            }
        }
    }

    fn run(&mut self, words: &[Vec<u8>]) -> io::Result<()> {
        if words.is_empty() {
            return Ok(());
        }
        let replies = self.session.run_all(words);
        let mut messages = self.session.messages();
        let before = self.session.client.messages_before.take();
        let after = messages.split_off(before.unwrap_or(messages.len()));
        for reply in messages.iter().chain(&replies).chain(&after) {
            self.send(reply);
        }
        self.check_unsent()
    }

    fn send_messages(&mut self) -> io::Result<()> {
        for message in self.session.messages() {
            self.send(&message);
        }
        self.check_unsent()
    }

    fn check_unsent(&self) -> io::Result<()> {
        if self.unsent.len() > UNSENT_BYTES_MAX {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }

    fn send(&mut self, reply: &Reply) {
        reply.write(self.session.protocol(), &mut self.unsent);
    }
}
