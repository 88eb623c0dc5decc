//! The append-only file behind the resource: one row a line, in order.
//!
//! The first row of a batch starts at the margin; rows that were committed
//! with it are indented by one space, which JSON ignores. So a reader of a
//! damaged file can tell what was surely acknowledged: every batch that has
//! another one behind it.

use super::limits::{MAX_BATCH_BYTES, MAX_ROW_BYTES};
use super::recover::{self, Sound};
use crate::model::LogRow;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub const FILE_NAME: &str = "log.jsonl";

#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("cannot {doing} {}: {source}{}", path.display(), remedy(source))]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error(
        "{} is in use by another process: stop it, or give this one another data directory",
        path.display()
    )]
    InUse { path: PathBuf },
    #[error(
        "{}:{line}: {problem}, and the {cut_bytes} bytes from there on hold rows that were \
         acknowledged: put back a copy of the file, or keep what is good with \
         `sed -i '{line},$d' {}` and live without the rest",
        path.display(),
        path.display()
    )]
    Corrupt {
        path: PathBuf,
        line: u64,
        problem: String,
        cut_bytes: u64,
    },
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space there and start again: nothing that was acknowledged is lost"
        }
        io::ErrorKind::PermissionDenied => {
            "; give this user the right to write there, or name another data directory"
        }
        _ => "",
    }
}

pub(super) struct Log {
    /// Locked, because two processes that append to one file would each
    /// believe in an order that the file does not have.
    file: Flock<File>,
    path: PathBuf,
    sound: Sound,
    /// A test can hold every sync back.
    #[cfg(test)]
    before_sync: Option<Box<dyn Fn() + Send>>,
}

impl Log {
    /// Opens or creates the log in `dir` and hands every row in it to `each`.
    pub fn open(dir: &Path, each: impl FnMut(LogRow)) -> Result<Log, LogError> {
        let path = dir.join(FILE_NAME);
        create_dir_durably(dir)?;
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .open(&path)
            .map_err(failed("open", &path))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Err(LogError::InUse { path }),
            Err((_, errno)) => return Err(failed("lock", &path)(errno.into())),
        };
        let (sound, torn_bytes) = recover::read_back(&file, &path, each)?;
        if torn_bytes > 0 {
            eprintln!(
                "resource: cut {torn_bytes} bytes off the end of {}: a batch that was \
                 never acknowledged",
                path.display()
            );
            file.set_len(sound.bytes)
                .map_err(failed("cut the torn end off", &path))?;
        }
        // Rows of a process that was killed between write and sync are in the
        // file but perhaps not on disk; from here on they are shown.
        file.sync_all().map_err(failed("sync", &path))?;
        sync_dir(dir)?;
        Ok(Log {
            file,
            path,
            sound,
            #[cfg(test)]
            before_sync: None,
        })
    }

    /// The batch is in the file, and on disk only after a [`sync`](Log::sync).
    /// After an error of either it may be there in part: the log must not be
    /// used again.
    pub fn write(&mut self, batch: &Batch) -> Result<(), LogError> {
        (&*self.file)
            .write_all(&batch.bytes)
            .map_err(failed("write to", &self.path))
    }

    /// When this returns, the batch that was just written is on disk.
    pub fn sync(&mut self, batch: &Batch) -> Result<(), LogError> {
        #[cfg(test)]
        self.before_sync.iter().for_each(|wait| wait());
        self.file.sync_data().map_err(failed("sync", &self.path))?;
        self.sound.bytes += batch.bytes.len() as u64;
        self.sound.rows += batch.rows;
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is on disk for sure.
    pub fn durable(&self) -> Sound {
        self.sound
    }

    /// A log over any file, to meet the errors that a kernel really gives.
    /// Its lock is shared, since all tests of a machine have one `/dev/full`.
    #[cfg(test)]
    pub fn over(file: File) -> Log {
        Log {
            file: Flock::lock(file, FlockArg::LockSharedNonblock).unwrap(),
            path: PathBuf::from("log-of-a-test"),
            sound: Sound::default(),
            before_sync: None,
        }
    }

    #[cfg(test)]
    pub fn at(self, path: &Path) -> Log {
        Log {
            path: path.to_owned(),
            ..self
        }
    }

    #[cfg(test)]
    pub fn held_back_by(self, wait: impl Fn() + Send + 'static) -> Log {
        Log {
            before_sync: Some(Box::new(wait)),
            ..self
        }
    }
}

/// Rows that share one write and one sync.
#[derive(Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    rows: u64,
}

impl Batch {
    pub fn push(&mut self, row: &LogRow) {
        if self.rows > 0 {
            self.bytes.push(b' ');
        }
        serde_json::to_writer(&mut self.bytes, row).expect("plain data into memory cannot fail");
        self.bytes.push(b'\n');
        self.rows += 1;
    }

    /// Whether the longest row that can be still fits.
    pub fn has_room(&self) -> bool {
        self.bytes.len() + MAX_ROW_BYTES <= MAX_BATCH_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.rows = 0;
    }
}

pub(super) fn failed<'a>(
    doing: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> LogError + use<'a> {
    move |source| LogError::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

/// A directory is durable only when the directory that names it is synced.
fn create_dir_durably(dir: &Path) -> Result<(), LogError> {
    if dir.is_dir() {
        return Ok(());
    }
    let parents: Vec<&Path> = dir
        .ancestors()
        .skip(1)
        .map(|parent| {
            if parent == Path::new("") {
                Path::new(".")
            } else {
                parent
            }
        })
        .collect();
    let existing = parents.iter().take_while(|parent| !parent.is_dir()).count();
    fs::create_dir_all(dir).map_err(failed("create the directory", dir))?;
    parents
        .iter()
        .take(existing + 1)
        .try_for_each(|parent| sync_dir(parent))
}

fn sync_dir(dir: &Path) -> Result<(), LogError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(failed("sync the directory", dir))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{RowOutcome, RowValue};

    fn row(seq: u64, value: &[u8]) -> LogRow {
        LogRow {
            seq,
            at_ns: u64::MAX,
            key: "\"".repeat(super::super::MAX_KEY_BYTES),
            outcome: RowOutcome::Duplicate,
            token: Some(crate::model::FencingToken(u64::MAX)),
            token_seq: u64::MAX,
            seen: Some(crate::model::FencingToken(u64::MAX)),
            owner: Some("\t".repeat(super::super::MAX_OWNER_BYTES)),
            based_on: Some(u64::MAX),
            body: Some(crate::model::BodyHash(u64::MAX)),
            value: Some(RowValue::from_bytes(value)),
        }
    }

    #[test]
    fn no_row_is_longer_than_its_bound() {
        for byte in [1u8, b'"', 0xff] {
            let mut batch = Batch::default();
            batch.push(&row(u64::MAX, &[byte; super::super::MAX_BODY_BYTES]));
            assert!(batch.bytes.len() < MAX_ROW_BYTES, "{byte}");
        }
    }

    #[test]
    fn a_batch_says_when_it_is_full_and_never_grows_beyond_its_bound() {
        let mut batch = Batch::default();
        let mut seq = 0;
        while batch.has_room() {
            seq += 1;
            batch.push(&row(seq, &[1; super::super::MAX_BODY_BYTES]));
        }
        assert!(batch.rows >= 2 && batch.bytes.len() <= MAX_BATCH_BYTES);
    }

    #[test]
    fn directories_that_do_not_exist_are_created() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        Log::open(&deep, |_| ()).unwrap();
        assert!(deep.join(FILE_NAME).is_file());
    }

    #[test]
    fn two_processes_cannot_share_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let first = Log::open(dir.path(), |_| ()).unwrap();
        let second = Log::open(dir.path(), |_| ());
        assert!(matches!(second, Err(LogError::InUse { .. })));
        drop(first);
        Log::open(dir.path(), |_| ()).unwrap();
    }

    #[test]
    fn a_full_disk_is_named_with_its_remedy() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let mut batch = Batch::default();
        batch.push(&row(1, b"a"));
        let error = Log::over(full).write(&batch).unwrap_err().to_string();
        assert!(error.contains("write to log-of-a-test"), "{error}");
        assert!(error.contains("No space left"), "{error}");
        assert!(error.contains("free some space"), "{error}");
    }
}
