//! The mark: how much of the log was acknowledged, in a small file beside it.
//!
//! The log does not say which of its writes were answered. So after each sync, and before the
//! first answer, the number of rows and bytes and the hash of all of them are written here.
//! Damage before the mark affects acknowledged rows; writes after it were not answered.
//!
//! The mark also proves a sync: a log that ends at its mark is on disk, and one that is longer
//! may have ended with a sync that failed.
//!
//! It is written in place, in one small block that keeps its length, and only after the log is
//! on disk, so it is never ahead of the log. It is not synced with each batch: if the process is
//! killed, the system still has it, and after a power failure it may be some batches behind.
//! Then the complete rows after it are kept.

use super::log::LogError;
use super::recover::Sound;
use super::storage::{MARK_FILE_NAME, Storage};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// It is shorter than a sector, so a disk writes all of it or nothing.
const BLOCK_BYTES: usize = 256;

/// The beginning of the log that may have been answered.
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

    /// Reads the mark; None if there is none: the log is new, or an older program wrote it.
    pub fn read(storage: &dyn Storage) -> Result<Option<Acknowledged>, LogError> {
        let content = storage.mark()?.unwrap_or_default();
        if content.is_empty() {
            return Ok(None);
        }
        let parsed = serde_json::from_slice(&content);
        parsed.map(Some).map_err(|error| LogError::BadMark {
            path: storage.path().with_file_name(MARK_FILE_NAME),
            error,
        })
    }

    pub fn to_block(&self) -> Vec<u8> {
        let mut block = serde_json::to_vec(self).expect("plain data into memory");
        block.resize(BLOCK_BYTES - 1, b' ');
        block.push(b'\n');
        block
    }
}
