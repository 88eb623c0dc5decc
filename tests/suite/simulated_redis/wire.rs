use simulated_redis::Reply;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// One connection to a server of either kind.
pub struct Wire {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
}

impl Wire {
    pub fn over(stream: impl Stream + 'static) -> Wire {
        Wire {
            stream: Box::new(stream),
            received: Vec::new(),
        }
    }

    pub async fn send(&mut self, words: &[Vec<u8>]) {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&bytes).await.expect("sent");
    }

    /// Reads the next thing that the server says.
    pub async fn read(&mut self) -> io::Result<Reply> {
        loop {
            if let Some((reply, length)) = parse(&self.received) {
                self.received.drain(..length);
                return Ok(reply);
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Option<(Reply, usize)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    let text = String::from_utf8_lossy(&bytes[1..end]).into_owned();
    let mut at = end + 2;
    let number = || text.parse::<i64>().expect("a number");
    let mut items = |count: i64| {
        let mut items = Vec::new();
        for _ in 0..count {
            let (item, length) = parse(&bytes[at..])?;
            items.push(item);
            at += length;
        }
        Some(items)
    };
    let reply = match bytes[0] {
        b'_' => Reply::Nil,
        b':' => Reply::Int(number()),
        b'+' => Reply::Simple(text),
        b'-' => Reply::Error(text),
        b'$' if number() < 0 => Reply::Nil,
        b'$' => {
            let length = usize::try_from(number()).expect("not negative");
            let text = bytes.get(at..at + length + 2)?;
            at += text.len();
            Reply::Bulk(text[..length].to_vec())
        }
        b'*' if number() < 0 => Reply::NilArray,
        b'*' => Reply::Array(items(number())?),
        b'>' => Reply::Push(items(number())?),
        b'%' => {
            let flat = items(2 * number())?;
            let pairs = flat.chunks(2).map(|two| (two[0].clone(), two[1].clone()));
            Reply::Map(pairs.collect())
        }
        other => panic!("{:?} begins no answer", other as char),
    };
    Some((reply, at))
}
