//! The two files of the resource, the log and its mark, as something that can fail.
//!
//! A sync that fails is reported once. Afterwards the system treats what it could not write as
//! written: it shows it to readers, and a second sync succeeds. A block that failed can stay
//! lost although a later sync of it succeeds. So a file whose sync failed is not written to
//! again: what it shows is copied to a new file, which takes its place after its own sync.

mod folder;
#[cfg(test)]
pub(super) mod model;

#[cfg(test)]
pub(super) use folder::FILE_NAME;
pub(super) use folder::{Folder, MARK_FILE_NAME};

use super::log::LogError;
use std::path::Path;

/// After an error of anything but reading, nothing more may be written with the same value.
pub(super) trait Storage: Send {
    fn path(&self) -> &Path;

    fn length(&self) -> Result<u64, LogError>;

    /// Reads a part of the log; 0 bytes at its end.
    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, LogError>;

    /// Adds bytes to the log. They are on disk only after a sync.
    fn append(&mut self, bytes: &[u8]) -> Result<(), LogError>;

    fn sync(&mut self) -> Result<(), LogError>;

    /// Copies the beginning of the log to a new file and syncs that; passes it to `each`.
    fn copy(&mut self, bytes: u64, each: &mut dyn FnMut(&[u8])) -> Result<(), LogError>;

    /// Puts the copy in the place of the log, durably.
    fn adopt(&mut self) -> Result<(), LogError>;

    /// Reads the mark; None if there is none.
    fn mark(&self) -> Result<Option<Vec<u8>>, LogError>;

    /// Puts a new mark in the place of the old one, durably.
    fn new_mark(&mut self, block: &[u8]) -> Result<(), LogError>;

    /// Writes over the mark, without a sync.
    fn write_mark(&mut self, block: &[u8]) -> Result<(), LogError>;

    fn sync_mark(&mut self) -> Result<(), LogError>;
}
