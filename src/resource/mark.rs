//! How much of the log was acknowledged, in a small file beside it.
//!
//! A torn end and a damaged end look the same in the log itself: whether somebody
//! was answered is not in it. So after each sync, and before the first answer, the
//! count of rows and bytes and the hash of all of them are written here. Damage
//! before the mark is damage of acknowledged rows; behind it, nobody was answered.
//!
//! The mark is written in place, in one small block that keeps its length, and
//! only after the log is on disk, so it is never ahead of it. It is not synced
//! with each batch: a killed process leaves it with the system, and after a power
//! failure it may be some batches behind. Then the rows behind it that are whole
//! are kept as they are.

use super::log::{LogError, failed};
use super::recover::Sound;
use crate::files::{self, Links};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

pub(super) const FILE_NAME: &str = "log.mark";

/// A disk writes so much as a whole.
const BLOCK_BYTES: usize = 256;

/// The beginning of the log that somebody may have been answered for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Acknowledged {
    pub rows: u64,
    pub bytes: u64,
    pub sha256: String,
}

impl Acknowledged {
    pub fn new(sound: Sound, hash: &Sha256) -> Acknowledged {
        let digest = hash.clone().finalize();
        let sha256 = digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Acknowledged {
            rows: sound.rows,
            bytes: sound.bytes,
            sha256,
        }
    }

    /// None where there is no mark: the log is new, or an older program wrote it.
    pub fn read(dir: &Path) -> Result<Option<Acknowledged>, LogError> {
        let path = dir.join(FILE_NAME);
        let content = match files::read(&path, Links::Refuse, BLOCK_BYTES as u64) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            content => content.map_err(failed("read", &path))?,
        };
        if content.is_empty() {
            return Ok(None);
        }
        let parsed = serde_json::from_slice(&content);
        parsed
            .map(Some)
            .map_err(|error| LogError::BadMark { path, error })
    }
}

pub(super) struct Mark {
    file: File,
    path: PathBuf,
    hash: Sha256,
}

impl Mark {
    /// Durable, for a log that has been read back.
    pub fn open(dir: &Path, sound: Sound, hash: Sha256) -> Result<Mark, LogError> {
        let path = dir.join(FILE_NAME);
        let file = files::edit_private(&path).map_err(failed("open", &path))?;
        let mark = Mark { file, path, hash };
        mark.write(sound)?;
        mark.sync()?;
        Ok(mark)
    }

    /// Everything up to here is on disk.
    pub fn advance(&mut self, batch: &[u8], sound: Sound) -> Result<(), LogError> {
        self.hash.update(batch);
        self.write(sound)
    }

    fn write(&self, sound: Sound) -> Result<(), LogError> {
        let acknowledged = Acknowledged::new(sound, &self.hash);
        let mut block = serde_json::to_vec(&acknowledged).expect("plain data into memory");
        block.resize(BLOCK_BYTES - 1, b' ');
        block.push(b'\n');
        let written = self.file.write_all_at(&block, 0);
        written.map_err(failed("write to", &self.path))
    }

    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_all().map_err(failed("sync", &self.path))
    }

    #[cfg(test)]
    pub fn of_a_test() -> Mark {
        Mark {
            file: tempfile::tempfile().unwrap(),
            path: PathBuf::from("mark-of-a-test"),
            hash: Sha256::new(),
        }
    }
}
