//! The append-only file behind the resource: one row a line, in order.
//!
//! The first row of a batch starts at the margin; rows that were committed
//! with it are indented by one space, which JSON ignores. How much of it was
//! acknowledged is in the mark beside it.

use super::limits::{MAX_BATCH_BYTES, MAX_ROW_BYTES};
use super::mark::{self, Acknowledged, Mark};
use super::recover::{self, Recovered, Sound};
use crate::files;
use crate::model::LogRow;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
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
        "{}:{line}: {problem}, and the {cut_bytes} bytes from there on {} rows that were \
         acknowledged: put back a copy of the file, or keep what is good with \
         `sed -i '{line},$d' {} && rm -f {}` and live without the rest",
        path.display(),
        if *certainly { "hold" } else { "may hold" },
        path.display(),
        path.with_file_name(mark::FILE_NAME).display()
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
        path.with_file_name(mark::FILE_NAME).display()
    )]
    NotAsAcknowledged {
        path: PathBuf,
        rows: u64,
        problem: &'static str,
    },
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
    mark: Mark,
    /// A test can hold every sync back.
    #[cfg(test)]
    before_sync: Option<Box<dyn Fn() + Send>>,
}

impl Log {
    /// Opens or creates the log in `dir` and hands every row in it to `each`.
    pub fn open(dir: &Path, each: impl FnMut(LogRow)) -> Result<Log, LogError> {
        let path = dir.join(FILE_NAME);
        create_dir_durably(dir)?;
        let file = files::append_private(&path).map_err(failed("open", &path))?;
        let file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(file) => file,
            Err((_, Errno::EWOULDBLOCK)) => return Err(LogError::InUse { path }),
            Err((_, errno)) => return Err(failed("lock", &path)(errno.into())),
        };
        let acknowledged = Acknowledged::read(dir)?;
        let Recovered {
            sound,
            hash,
            torn_bytes,
        } = recover::read_back(&file, &path, acknowledged, each)?;
        if torn_bytes > 0 {
            eprintln!(
                "resource: cut {torn_bytes} bytes off the end of {}: an unfinished batch \
                 behind the mark of what was acknowledged",
                path.display()
            );
            file.set_len(sound.bytes)
                .map_err(failed("cut the torn end off", &path))?;
        }
        // Rows of a process that was killed between write and sync are in the
        // file but perhaps not on disk; from here on they are shown.
        file.sync_all().map_err(failed("sync", &path))?;
        let mark = Mark::open(dir, sound, hash)?;
        sync_dir(dir)?;
        Ok(Log {
            file,
            path,
            sound,
            mark,
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

    /// When this returns, the batch that was just written is on disk, and marked as such.
    pub fn sync(&mut self, batch: &Batch) -> Result<(), LogError> {
        #[cfg(test)]
        self.before_sync.iter().for_each(|wait| wait());
        self.file.sync_data().map_err(failed("sync", &self.path))?;
        self.sound.bytes += batch.bytes.len() as u64;
        self.sound.rows += batch.rows;
        self.mark.advance(&batch.bytes, self.sound)
    }

    /// Nothing will be written any more.
    pub fn close(self) -> Result<(), LogError> {
        self.mark.sync()
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
            mark: Mark::of_a_test(),
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
    let mut private = DirBuilder::new();
    let made = private.recursive(true).mode(0o700).create(dir);
    made.map_err(failed("create the directory", dir))?;
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
        Log::open(&deep, |_| ()).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&deep), 0o700);
        for name in [FILE_NAME, mark::FILE_NAME] {
            assert_eq!(mode(&deep.join(name)), 0o600, "{name}");
        }
    }

    #[test]
    fn a_link_is_not_followed_and_a_pipe_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let elsewhere = dir.path().join("elsewhere");
        std::fs::write(&elsewhere, "precious\n").unwrap();
        for name in [FILE_NAME, mark::FILE_NAME] {
            let data = dir.path().join(format!("data-of-{name}"));
            std::fs::create_dir(&data).unwrap();
            std::os::unix::fs::symlink(&elsewhere, data.join(name)).unwrap();
            let error = Log::open(&data, |_| ()).err().expect("refused").to_string();
            assert!(error.contains("links are not followed"), "{error}");
            std::fs::remove_file(data.join(name)).unwrap();
            nix::unistd::mkfifo(&data.join(name), nix::sys::stat::Mode::S_IRWXU).unwrap();
            let error = Log::open(&data, |_| ()).err().expect("refused").to_string();
            assert!(error.contains("not a regular file"), "{error}");
        }
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"precious\n");
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
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut batch = Batch::default();
        batch.push(&row(1, b"a"));
        let error = Log::over(full).write(&batch).unwrap_err().to_string();
        assert!(error.contains("write to log-of-a-test"), "{error}");
        assert!(error.contains("No space left"), "{error}");
        assert!(error.contains("free some space"), "{error}");
    }
}
