use super::replies::Replies;
use super::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A connection that sends raw bytes to one Redis and counts the answers. Its buffer is all the
/// memory it needs.
pub(super) struct Wire {
    stream: TcpStream,
    buffer: Vec<u8>,
    patience: Duration,
}

const BUFFER_BYTES: usize = 16 << 10;

impl Wire {
    pub(super) fn new(stream: TcpStream, patience: Duration) -> Wire {
        Wire {
            stream,
            buffer: vec![0; BUFFER_BYTES],
            patience,
        }
    }

    pub(super) async fn send(&mut self, commands: &[u8], answers: u64) -> Result<Replies, Stop> {
        self.write(commands).await?;
        self.read(answers).await
    }

    pub(super) async fn write(&mut self, commands: &[u8]) -> Result<(), Stop> {
        let writing = self.stream.write_all(commands);
        match timeout(self.patience, writing).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Stop::Lost(error.to_string())),
            Err(_) => Err(self.silent()),
        }
    }

    pub(super) async fn read(&mut self, answers: u64) -> Result<Replies, Stop> {
        let mut replies = Replies::default();
        while replies.seen() < answers {
            let reading = self.stream.read(&mut self.buffer);
            let Ok(read) = timeout(self.patience, reading).await else {
                return Err(self.silent());
            };
            match read {
                Ok(0) => return Err(Stop::Lost("the server closed the connection".to_owned())),
                Ok(length) => replies.feed(&self.buffer[..length]).map_err(Stop::Lost)?,
                Err(error) => return Err(Stop::Lost(error.to_string())),
            }
        }
        Ok(replies)
    }

    fn silent(&self) -> Stop {
        Stop::Lost(format!("nothing came for {} s", self.patience.as_secs()))
    }
}
