//! The append-only file behind the resource: one row per line, in order.
//!
//! The first row of a batch starts at the margin; the other rows that were committed with it
//! are indented by one space, which JSON ignores. The mark beside the log says how much of it
//! was acknowledged.

use super::limits::{MAX_BATCH_BYTES, MAX_ROW_BYTES};
use super::mark::Acknowledged;
use super::recover::{self, Recovered, Sound};
use super::row_line::{self, Row};
use super::storage::{Folder, MARK_FILE_NAME, Storage};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

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
        "{}:{line}: {problem}, and the {cut_bytes} bytes from there on {} rows that were \
         acknowledged: put back a copy of the file, or keep what is good with \
         `sed -i '{line},$d' {} && rm -f {}` and live without the rest",
        path.display(),
        if *certainly { "hold" } else { "may hold" },
        path.display(),
        path.with_file_name(MARK_FILE_NAME).display()
    )]
    Corrupt {
        path: PathBuf,
        line: u64,
        problem: String,
        cut_bytes: u64,
        certainly: bool,
    },
    #[error(
        "{} does not hold the {rows} rows that were acknowledged: {problem}; put back a copy of \
         the file, or remove {} to take it as it is",
        path.display(),
        path.with_file_name(MARK_FILE_NAME).display()
    )]
    NotAsAcknowledged {
        path: PathBuf,
        rows: u64,
        problem: &'static str,
    },
    #[error(
        "cannot copy {}: it differs when it is read again, because its disk has failed; start again, \
         or put back a copy of the file",
        path.display()
    )]
    Unsteady { path: PathBuf },
    #[error(
        "{} is not a log of the resource ({problem}), and is left alone: name another data directory",
        path.display()
    )]
    Foreign { path: PathBuf, problem: String },
    #[error(
        "{} does not say how much of the log was acknowledged ({error}): put back a copy of it, or \
         remove it to take the log as it is",
        path.display()
    )]
    BadMark {
        path: PathBuf,
        error: serde_json::Error,
    },
}

fn remedy(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space there and start again: nothing that was acknowledged is lost \
             (a start may need as much as the log has)"
        }
        io::ErrorKind::PermissionDenied => {
            "; give this user the right to write there, or name another data directory"
        }
        _ => "",
    }
}

pub(super) struct Log {
    storage: Box<dyn Storage>,
    sound: Sound,
    hash: Sha256,
    /// Lets a test delay every sync.
    #[cfg(test)]
    before_sync: Option<Box<dyn Fn() + Send>>,
}

impl Log {
    /// Opens or creates the log in a folder and passes every row in it to `each`.
    pub fn open<R: Row>(dir: &Path, each: impl FnMut(R)) -> Result<Log, LogError> {
        let (log, torn_bytes) = Log::open_on(Box::new(Folder::open(dir)?), each)?;
        if torn_bytes > 0 {
            eprintln!(
                "resource: cut {torn_bytes} bytes off the end of {}: an unfinished batch \
                 behind the mark of what was acknowledged",
                log.path().display()
            );
        }
        Ok(log)
    }

    /// Reads a log back; returns also the length of the torn end that it cut off. From here on
    /// clients can see the rows, so all of them are on disk by a sync that succeeded: the one
    /// before the mark was written, or else that of a new file.
    pub fn open_on<R: Row>(
        mut storage: Box<dyn Storage>,
        each: impl FnMut(R),
    ) -> Result<(Log, u64), LogError> {
        let acknowledged = Acknowledged::read(&*storage)?;
        let recovered = recover::read_back(&*storage, acknowledged.as_ref(), each)?;
        let Recovered {
            sound,
            hash,
            torn_bytes,
        } = recovered;
        let is_synced = acknowledged.is_some_and(|mark| mark.bytes == sound.bytes + torn_bytes);
        if !is_synced {
            let mut copied = Sha256::new();
            storage.copy(sound.bytes, &mut |bytes| copied.update(bytes))?;
            // What was never written can be shown once and be gone a moment later.
            if copied.finalize() != hash.clone().finalize() {
                let path = storage.path().to_owned();
                return Err(LogError::Unsteady { path });
            }
            storage.adopt()?;
        }
        storage.new_mark(&Acknowledged::new(sound, &hash).to_block())?;
        let log = Log::new(storage, sound, hash);
        Ok((log, torn_bytes))
    }

    fn new(storage: Box<dyn Storage>, sound: Sound, hash: Sha256) -> Log {
        Log {
            storage,
            sound,
            hash,
            #[cfg(test)]
            before_sync: None,
        }
    }

    /// Writes the batch to the file; it is on disk only after a [`sync`](Log::sync). After an
    /// error of either, part of it may be there: the log must not be used again.
    pub fn write(&mut self, batch: &Batch) -> Result<(), LogError> {
        self.storage.append(&batch.bytes)
    }

    /// Syncs the batch that was just written, and marks it as durable.
    pub fn sync(&mut self, batch: &Batch) -> Result<(), LogError> {
        #[cfg(test)]
        self.before_sync.iter().for_each(|wait| wait());
        self.storage.sync()?;
        self.sound.bytes += batch.bytes.len() as u64;
        self.sound.rows += batch.rows;
        self.hash.update(&batch.bytes);
        let mark = Acknowledged::new(self.sound, &self.hash);
        self.storage.write_mark(&mark.to_block())
    }

    /// Closes the log; nothing can be written any more.
    pub fn close(mut self) -> Result<(), LogError> {
        self.storage.sync_mark()
    }

    pub fn path(&self) -> &Path {
        self.storage.path()
    }

    /// Returns what is certainly on disk.
    pub fn durable(&self) -> Sound {
        self.sound
    }

    /// Makes an empty log over any storage, without a look at it.
    #[cfg(test)]
    pub fn over(storage: impl Storage + 'static) -> Log {
        Log::new(Box::new(storage), Sound::default(), Sha256::new())
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
    pub fn push(&mut self, row: &impl Row) {
        if self.rows > 0 {
            self.bytes.push(b' ');
        }
        let before = self.bytes.len();
        row_line::push(row, &mut self.bytes);
        // A longer one could never be read back.
        debug_assert!(self.bytes.len() - before <= MAX_ROW_BYTES);
        self.rows += 1;
    }

    /// Returns whether the longest possible row still fits.
    pub fn has_room(&self) -> bool {
        self.bytes.len() + MAX_ROW_BYTES <= MAX_BATCH_BYTES
    }

    #[cfg(test)]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
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

#[cfg(test)]
mod tests {
    use super::super::storage::FILE_NAME;
    use super::*;
    use crate::model::{LogRow, RowOutcome, RowValue};
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

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
    fn directories_that_do_not_exist_are_created_for_this_user_alone() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        Log::open(&deep, |_: LogRow| ()).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&deep), 0o700);
        for name in [FILE_NAME, MARK_FILE_NAME] {
            assert_eq!(mode(&deep.join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn a_link_is_not_followed_and_a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "precious\n").unwrap();
        for name in [FILE_NAME, MARK_FILE_NAME] {
            let data = dir.path().join(format!("data-of-{name}"));
            std::fs::create_dir(&data).unwrap();
            std::os::unix::fs::symlink(&elsewhere, data.join(name)).unwrap();
            let error = Log::open(&data, |_: LogRow| ())
                .err()
                .expect("refused")
                .to_string();
            assert!(error.contains("links are not followed"), "{error}");
            std::fs::remove_file(data.join(name)).unwrap();
            nix::unistd::mkfifo(&data.join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
            let error = Log::open(&data, |_: LogRow| ())
                .err()
                .expect("refused")
                .to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"precious\n");
    }

    #[test]
    fn two_processes_cannot_share_a_log() {
        let dir = tempfile::tempdir().unwrap();
        let first = Log::open(dir.path(), |_: LogRow| ()).unwrap();
        let second = Log::open(dir.path(), |_: LogRow| ());
        assert!(matches!(second, Err(LogError::InUse { .. })));
        drop(first);
        Log::open(dir.path(), |_: LogRow| ()).unwrap();
    }

    #[test]
    fn a_full_disk_is_named_with_its_remedy() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut batch = Batch::default();
        batch.push(&row(1, b"a"));
        let over = Folder::over(full, Path::new("log-of-a-test"));
        let error = Log::over(over).write(&batch).unwrap_err().to_string();
        assert!(error.contains("write to log-of-a-test"), "{error}");
        assert!(error.contains("No space left"), "{error}");
        assert!(error.contains("free some space"), "{error}");
    }
}
