use crate::reply::{Protocol, Reply};
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// What a server knows of one connection.
pub(crate) struct Client {
    pub(crate) id: u64,
    pub(crate) db: usize,
    pub(crate) protocol: Protocol,
    pub(crate) name: Vec<u8>,
    pub(crate) outbox: Arc<Outbox>,
    /// The number of messages that come before the answer to the present command. A client that
    /// hears its own changes sees the order in which a server writes the two.
    pub(crate) messages_before: Option<usize>,
}

/// The messages of others to a connection, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    content: Mutex<Content>,
}

#[derive(Default)]
struct Content {
    messages: Vec<Reply>,
    waker: Option<Waker>,
    is_over: bool,
}

impl Outbox {
    pub(crate) fn push(&self, message: Reply) {
        let mut content = self.content.lock();
        content.messages.push(message);
        content.wake();
    }

    /// Ends the connection from the side of the server.
    pub(crate) fn end(&self) {
        let mut content = self.content.lock();
        content.is_over = true;
        content.wake();
    }

    pub(crate) fn len(&self) -> usize {
        self.content.lock().messages.len()
    }

    pub(crate) fn take(&self) -> Vec<Reply> {
        std::mem::take(&mut self.content.lock().messages)
    }

    /// Returns whether the server has ended the connection.
    pub(crate) fn is_over(&self) -> bool {
        self.content.lock().is_over
    }

    /// Is ready if there are messages, or the connection is over.
    pub(crate) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut content = self.content.lock();
        if content.is_over || !content.messages.is_empty() {
            return Poll::Ready(());
        }
        content.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Content {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}
