//! The log as a stream of bytes that are on disk: once, or for as long as the reader stays.

use super::recover::Sound;
use axum::body::Body;
use bounded_io::files::{self, Links};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use std::io;
use std::path::Path;
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::sync::watch;

const CHUNK_BYTES: u64 = 64 * 1024;

/// Returns the first `durable` bytes, and nothing after them.
pub(super) async fn snapshot(path: &Path, durable: u64) -> io::Result<Body> {
    let reader = Reader::open(path, durable).await?;
    Ok(Body::from_stream(stream::try_unfold(
        reader,
        |mut reader| async move { Ok::<_, io::Error>(reader.chunk().await?.map(|c| (c, reader))) },
    )))
}

/// Returns what is durable now and whatever becomes durable, until nothing more can, or the
/// reader goes away.
pub(super) async fn follow(path: &Path, mut durable: watch::Receiver<Sound>) -> io::Result<Body> {
    let until = durable.borrow_and_update().bytes;
    let reader = Reader::open(path, until).await?;
    Ok(Body::from_stream(stream::try_unfold(
        (reader, durable),
        |(mut reader, mut durable)| async move {
            loop {
                if let Some(chunk) = reader.chunk().await? {
                    return Ok::<_, io::Error>(Some((chunk, (reader, durable))));
                }
                // The commit thread closes this when it ends, after the last change is seen.
                if durable.changed().await.is_err() {
                    return Ok(None);
                }
                reader.until = durable.borrow_and_update().bytes;
            }
        },
    )))
}

struct Reader {
    file: File,
    sent: u64,
    /// Bytes after this position may be in the file already, but not on disk.
    until: u64,
}

impl Reader {
    async fn open(path: &Path, until: u64) -> io::Result<Reader> {
        let file = File::from_std(files::open(path, Links::Refuse)?);
        Ok(Reader {
            file,
            sent: 0,
            until,
        })
    }

    async fn chunk(&mut self) -> io::Result<Option<Bytes>> {
        let wanted = (self.until - self.sent).min(CHUNK_BYTES);
        if wanted == 0 {
            return Ok(None);
        }
        let mut chunk = BytesMut::with_capacity(wanted as usize);
        let read = (&mut self.file).take(wanted).read_buf(&mut chunk).await?;
        if read == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the log is shorter than what was synced: somebody else has cut it",
            ));
        }
        self.sent += read as u64;
        Ok(Some(chunk.freeze()))
    }
}
