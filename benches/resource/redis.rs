use crate::turns::Writer;
use crate::{Trouble, VALUE};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection that sends SET and reads +OK.
pub struct RedisWriter {
    stream: TcpStream,
    command: Vec<u8>,
}

impl RedisWriter {
    pub async fn connect(address: &str, number: usize) -> Result<RedisWriter, Trouble> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let parts = ["SET", &format!("key-{number}"), VALUE];
        let parts = parts.map(|part| format!("${}\r\n{part}\r\n", part.len()));
        let command = format!("*3\r\n{}", parts.concat()).into_bytes();
        Ok(RedisWriter { stream, command })
    }
}

impl Writer for RedisWriter {
    async fn write(&mut self) -> Result<(), Trouble> {
        self.stream.write_all(&self.command).await?;
        let mut answer = [0; 5];
        self.stream.read_exact(&mut answer).await?;
        match &answer == b"+OK\r\n" {
            true => Ok(()),
            false => Err(format!("Redis says {}", String::from_utf8_lossy(&answer)).into()),
        }
    }
}
