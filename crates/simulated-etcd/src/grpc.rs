//! gRPC over HTTP/2: each message has five bytes in front of it, and a status comes at the end.

use crate::status::Status;
use bytes::{Buf, Bytes, BytesMut};
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue, Response};
use prost::Message;
use std::future::poll_fn;
use std::io;

/// The longest request that an etcd takes is 1.5 MiB.
const MOST_BYTES: usize = 1 << 21;
const HEAD_BYTES: usize = 5;

/// The messages of one call.
pub struct Requests {
    body: RecvStream,
    received: BytesMut,
}

impl Requests {
    pub fn new(body: RecvStream) -> Requests {
        Requests {
            body,
            received: BytesMut::new(),
        }
    }

    /// Returns the only message of a call.
    pub async fn only<M: Message + Default>(&mut self) -> Result<M, Status> {
        let message = self.next().await?;
        message.ok_or_else(|| Status::garbage("there is no request"))
    }

    /// Returns the next message; None at the end. It may be given up and asked again.
    pub async fn next<M: Message + Default>(&mut self) -> Result<Option<M>, Status> {
        loop {
            if let Some(message) = self.take()? {
                return M::decode(message).map(Some).map_err(Status::garbage);
            }
            match self.body.data().await {
                Some(Ok(bytes)) => {
                    let room = self.body.flow_control().release_capacity(bytes.len());
                    room.map_err(Status::garbage)?;
                    self.received.extend_from_slice(&bytes);
                }
                Some(Err(error)) => return Err(Status::garbage(error)),
                None => return Ok(None),
            }
        }
    }

    /// Reads to the end: a stream that its client has not ended would have to be reset.
    pub async fn finish(&mut self) {
        while let Some(Ok(bytes)) = self.body.data().await {
            let _or_it_is_over = self.body.flow_control().release_capacity(bytes.len());
        }
    }

    fn take(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(head) = self.received.first_chunk::<HEAD_BYTES>() else {
            return Ok(None);
        };
        let [is_packed, length @ ..] = *head;
        let length = u32::from_be_bytes(length) as usize;
        if is_packed != 0 || length > MOST_BYTES {
            return Err(Status::garbage("a message that is packed or too long"));
        }
        if self.received.len() < HEAD_BYTES + length {
            return Ok(None);
        }
        self.received.advance(HEAD_BYTES);
        Ok(Some(self.received.split_to(length).freeze()))
    }
}

/// The way back of one call.
pub struct Answers {
    respond: SendResponse<Bytes>,
    /// It begins with the first message.
    stream: Option<SendStream<Bytes>>,
}

impl Answers {
    pub fn new(respond: SendResponse<Bytes>) -> Answers {
        let stream = None;
        Answers { respond, stream }
    }

    pub fn send(&mut self, message: &[u8]) -> Result<(), Status> {
        let mut frame = vec![0];
        frame.extend_from_slice(&(message.len() as u32).to_be_bytes());
        frame.extend_from_slice(message);
        let sent = self.begin().and_then(|stream| {
            let is_last = false;
            stream.send_data(frame.into(), is_last)
        });
        sent.map_err(Status::garbage)
    }

    fn begin(&mut self) -> Result<&mut SendStream<Bytes>, h2::Error> {
        if self.stream.is_none() {
            let is_last = false;
            self.stream = Some(self.respond.send_response(head(), is_last)?);
        }
        Ok(self.stream.as_mut().expect("it was made"))
    }

    /// Ends the call. Whether the client still listens is its own affair.
    pub fn end(mut self, ended: Result<(), Status>) {
        let status = match ended {
            Ok(()) => Status::new(0, ""),
            Err(status) => status,
        };
        let trailers = trailers(&status);
        let _or_nobody_listens = match &mut self.stream {
            Some(stream) => stream.send_trailers(trailers),
            None => {
                let mut head = head();
                head.headers_mut().extend(trailers);
                self.respond.send_response(head, true).map(drop)
            }
        };
    }

    /// Returns when the client has given the call up, or is gone.
    pub async fn given_up(&mut self) {
        let _however = match &mut self.stream {
            Some(stream) => poll_fn(|context| stream.poll_reset(context)).await,
            None => poll_fn(|context| self.respond.poll_reset(context)).await,
        };
    }
}

fn head() -> Response<()> {
    let mut head = Response::new(());
    let grpc = HeaderValue::from_static("application/grpc");
    head.headers_mut().insert(http::header::CONTENT_TYPE, grpc);
    head
}

fn trailers(status: &Status) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(u16::from(status.code)));
    if let Ok(message) = HeaderValue::from_str(&status.message)
        && !message.is_empty()
    {
        trailers.insert("grpc-message", message);
    }
    trailers
}

pub fn broken(error: h2::Error) -> io::Error {
    io::Error::other(error)
}
