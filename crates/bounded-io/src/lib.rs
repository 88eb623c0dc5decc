#![doc = include_str!("../README.md")]

pub mod files;
pub mod serve;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use std::io::{self, BufRead, Read};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt};

/// Returns the body of an answer, of at most `limit` bytes.
pub async fn body(mut answer: reqwest::Response, limit: usize) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(io::Error::other)? {
        if body.len() + chunk.len() > limit {
            return Err(too_long("the answer", limit));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The reason why the body of a request was not accepted.
pub enum Unread {
    TooLong,
    BrokenOff(axum::Error),
}

/// Returns the body of a request, of at most `limit` bytes. A longer one is read and
/// dropped up to `patience`: otherwise a client that is still sending would see its
/// connection reset instead of the answer.
pub async fn sent(body: Body, limit: usize, patience: usize) -> Result<Bytes, Unread> {
    let mut chunks = body.into_data_stream();
    let mut kept = BytesMut::new();
    let mut length = 0;
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(Unread::BrokenOff)?;
        length += chunk.len();
        if length > patience {
            return Err(Unread::TooLong);
        }
        if length <= limit {
            kept.extend_from_slice(&chunk);
        }
    }
    match length > limit {
        true => Err(Unread::TooLong),
        false => Ok(kept.freeze()),
    }
}

/// Returns the next line with its end, of at most `limit` bytes, or `None` at the end.
pub async fn line(
    reader: &mut (impl AsyncBufRead + Unpin),
    limit: usize,
) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut some = reader.take(limit as u64 + 1);
    some.read_until(b'\n', &mut line).await?;
    match line.len() {
        0 => Ok(None),
        length if length > limit => Err(too_long("a line", limit)),
        _ => Ok(Some(line)),
    }
}

fn too_long(what: &str, limit: usize) -> io::Error {
    let why = format!("{what} has more than {limit} bytes");
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Returns the next line, cut to at most `limit` bytes, or `None` at the end.
pub fn cut_line(reader: &mut impl BufRead, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut some = reader.by_ref().take(limit as u64);
    some.read_until(b'\n', &mut line)?;
    if line.last() != Some(&b'\n') {
        reader.skip_until(b'\n')?;
    }
    Ok((!line.is_empty()).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_line_without_end_is_an_error_and_not_all_memory() {
        let mut endless = tokio::io::BufReader::new(tokio::io::repeat(b'x'));
        let error = line(&mut endless, 1000).await.unwrap_err().to_string();
        assert_eq!(error, "a line has more than 1000 bytes");
        let mut lines = &b"12\n1234\n5"[..];
        assert_eq!(line(&mut lines, 3).await.unwrap().unwrap(), b"12\n");
        assert!(line(&mut lines, 3).await.is_err());
        let mut last = &b"5"[..];
        assert_eq!(line(&mut last, 3).await.unwrap().unwrap(), b"5");
        assert_eq!(line(&mut last, 3).await.unwrap(), None);
    }

    #[test]
    fn a_long_line_is_cut_and_the_next_one_is_whole() {
        let long = "x".repeat(100_000);
        let text = format!("a\n{long}\n\nb");
        let mut input = text.as_bytes();
        let mut lines = Vec::new();
        while let Some(line) = cut_line(&mut input, 10).unwrap() {
            lines.push(String::from_utf8(line).unwrap());
        }
        assert_eq!(lines, ["a\n", "xxxxxxxxxx", "\n", "b"]);
    }
}
