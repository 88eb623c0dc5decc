//! Reads the log back at start. A crash may have torn its end.
//!
//! Only a batch that was never acknowledged can be torn: it is after the mark, no longer than a
//! batch can be, and contains no beginning of a new batch, because a batch begins only after
//! the previous one was synced. Bytes that a crash took are missing at the end or are whole
//! sectors of zeros. Everything else is damage and is refused. So is a bad end without a mark,
//! because then nobody knows what was acknowledged.

#[cfg(test)]
mod tests;

use super::limits::{MAX_BATCH_BYTES, MAX_ROW_BYTES};
use super::log::LogError;
use super::mark::Acknowledged;
use super::row_line::{self, Parsed, Row};
use super::storage::Storage;
use sha2::{Digest, Sha256};
use std::io::{self, BufRead, BufReader, Read};

/// A disk writes this many bytes, at a multiple of them, as a unit.
pub(super) const SECTOR_BYTES: usize = 512;

/// The complete part of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sound {
    pub bytes: u64,
    pub rows: u64,
}

pub(super) struct Recovered {
    pub sound: Sound,
    /// The hash of the complete part.
    pub hash: Sha256,
    /// The bytes after it that must be cut off.
    pub torn_bytes: u64,
}

/// Passes every complete row to `each`.
pub(super) fn read_back<R: Row>(
    storage: &dyn Storage,
    acknowledged: Option<&Acknowledged>,
    mut each: impl FnMut(R),
) -> Result<Recovered, LogError> {
    let length = storage.length()?;
    let marked_bytes = acknowledged.map_or(0, |mark| mark.bytes);
    let mut lines = Lines::of(storage);
    let mut sound = Sound::default();
    let mut hash = Sha256::new();
    let mut at_the_mark = Acknowledged::new(sound, &hash);
    let mut needs_sum = false;
    let mut torn_bytes = 0;
    while sound.bytes < length {
        let line = lines.read_line()?;
        match row_line::parse(line, sound.rows + 1, needs_sum) {
            Ok(Parsed { row, has_sum }) => {
                needs_sum = has_sum;
                each(row);
            }
            Err(problem) => {
                let tail = Tail {
                    begins: line,
                    behind: sound,
                    bytes: length - sound.bytes,
                };
                let is_behind_the_mark = sound.bytes >= marked_bytes;
                let may_be_torn = acknowledged.is_some() && is_behind_the_mark;
                if may_be_torn && tail.is_torn(storage)? {
                    torn_bytes = tail.bytes;
                    break;
                }
                return Err(tail.refused(storage, problem, !is_behind_the_mark));
            }
        }
        hash.update(line);
        sound.bytes += line.len() as u64;
        sound.rows += 1;
        if sound.bytes == marked_bytes {
            at_the_mark = Acknowledged::new(sound, &hash);
        }
    }
    if let Some(mark) = acknowledged
        && *mark != at_the_mark
    {
        return Err(LogError::NotAsAcknowledged {
            path: storage.path().to_owned(),
            rows: mark.rows,
            problem: match sound.bytes < mark.bytes {
                true => "it is shorter",
                false => "its bytes have another hash",
            },
        });
    }
    Ok(Recovered {
        sound,
        hash,
        torn_bytes,
    })
}

/// The lines of the log, the last one perhaps without its end.
struct Lines<'a> {
    reader: BufReader<LogReader<'a>>,
    line: Vec<u8>,
}

impl<'a> Lines<'a> {
    fn of(storage: &'a dyn Storage) -> Lines<'a> {
        let log = LogReader { storage, at: 0 };
        Lines {
            reader: BufReader::new(log),
            line: Vec::new(),
        }
    }

    fn read_line(&mut self) -> Result<&[u8], LogError> {
        self.line.clear();
        // The additional bytes are for the indentation, and to detect a line that is too long.
        let mut bounded = (&mut self.reader).take(MAX_ROW_BYTES as u64 + 2);
        let read = bounded.read_until(b'\n', &mut self.line);
        read.map_err(|error| error.downcast().expect("an error of the storage"))?;
        Ok(&self.line)
    }
}

struct LogReader<'a> {
    storage: &'a dyn Storage,
    at: u64,
}

impl Read for LogReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.storage.read_at(self.at, into);
        let read = read.map_err(io::Error::other)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// The rest of the log, which begins with a line that is not a row.
struct Tail<'a> {
    begins: &'a [u8],
    behind: Sound,
    bytes: u64,
}

impl Tail<'_> {
    fn is_torn(&self, storage: &dyn Storage) -> Result<bool, LogError> {
        if self.bytes > MAX_BATCH_BYTES as u64 || !self.is_of_a_row() {
            return Ok(false);
        }
        let mut bytes = vec![0; self.bytes as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match storage.read_at(self.behind.bytes + filled as u64, &mut bytes[filled..])? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(!begins_a_batch(&bytes) && (breaks_off(&bytes) || self.has_holes(&bytes)))
    }

    /// Returns whether it begins like the next row, or is all zeros, as unwritten blocks are.
    fn is_of_a_row(&self) -> bool {
        let begins = self.begins.strip_prefix(b" ").unwrap_or(self.begins);
        let row = format!("{{\"seq\":{},", self.behind.rows + 1);
        let written = begins.split(|&byte| byte == 0).next().unwrap_or_default();
        let common = written.len().min(row.len());
        written[..common] == row.as_bytes()[..common]
    }

    /// Returns whether there are zeros, and all of them are sectors that were not written.
    fn has_holes(&self, bytes: &[u8]) -> bool {
        let is_edge = |at: usize| {
            let at_the_end = at == 0 || at == bytes.len();
            at_the_end || (self.behind.bytes as usize + at).is_multiple_of(SECTOR_BYTES)
        };
        let is_zero = |at: usize| bytes.get(at) == Some(&0);
        let mut edges = (0..=bytes.len())
            .filter(|&at| is_zero(at) != (at > 0 && is_zero(at - 1)))
            .peekable();
        edges.peek().is_some() && edges.all(is_edge)
    }

    fn refused(&self, storage: &dyn Storage, problem: String, is_acknowledged: bool) -> LogError {
        let path = storage.path().to_owned();
        match is_acknowledged || self.behind.rows > 0 || self.is_of_a_row() {
            true => LogError::Corrupt {
                path,
                line: self.behind.rows + 1,
                problem,
                cut_bytes: self.bytes,
                certainly: is_acknowledged,
            },
            false => LogError::Foreign { path, problem },
        }
    }
}

/// Returns whether a line after the first one starts at the margin.
fn begins_a_batch(tail: &[u8]) -> bool {
    let mut later = tail.split(|&byte| byte == b'\n').skip(1);
    later.any(|line| line.first().is_some_and(|&byte| byte != b' ' && byte != 0))
}

/// Returns whether the last line is the beginning of a row.
fn breaks_off(tail: &[u8]) -> bool {
    let last = tail.rsplit(|&byte| byte == b'\n').next();
    last.is_some_and(|last| !last.is_empty() && row_line::is_beginning(last))
}
