//! A disk in memory that loses what a real one may lose. `tests/failing_disk.rs` compares it
//! with a real one.
//!
//! Each file has the blocks that readers see and those that are on disk. A sync that fails
//! treats all of them as written; new blocks that it did not write stay lost until the next
//! mount, even if they are written and synced again. Blocks that nobody has changed since a sync may be read from the
//! disk again at any time. A power failure leaves the disk, with any part of what was not
//! synced.

use super::super::log::{LogError, failed};
use super::Storage;
use fastrand::Rng;
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends before this step.
    Kill,
    /// The next sync fails, and writes an arbitrary part.
    FailSync,
    /// The next sync fails, and writes no new block.
    NoNewBlocks,
    /// The next write fails, and writes an arbitrary part.
    FailWrite,
}

#[derive(Clone, Default)]
struct Blocks {
    seen: Vec<u8>,
    on_disk: Vec<u8>,
    dirty: BTreeSet<usize>,
    lost: BTreeSet<usize>,
}

#[derive(Default)]
struct Names {
    seen: BTreeMap<&'static str, usize>,
    on_disk: BTreeMap<&'static str, usize>,
}

pub struct Disk {
    block_bytes: usize,
    pub random: Rng,
    files: Vec<Blocks>,
    names: Names,
    /// The fault that comes, after this many more steps.
    pub plan: Option<(u64, Fault)>,
    /// The fault that has struck in this life.
    pub struck: Option<Fault>,
    /// Whether a copy is really made. Without it, the log goes on in the same file.
    pub copies: bool,
}

const LOG: &str = "log";
const MARK: &str = "mark";
const COPY: &str = "copy";

impl Disk {
    pub fn new(seed: u64, block_bytes: usize) -> Disk {
        Disk {
            block_bytes,
            random: Rng::with_seed(seed),
            files: Vec::new(),
            names: Names::default(),
            plan: None,
            struck: None,
            copies: true,
        }
    }

    /// Begins the life of another process.
    pub fn restart(&mut self) {
        self.struck = None;
        self.plan = None;
    }

    pub fn lose_power(&mut self) {
        if self.random.bool() {
            self.names.on_disk = self.names.seen.clone();
        }
        self.names.seen = self.names.on_disk.clone();
        for file in &mut self.files {
            let dirty = std::mem::take(&mut file.dirty);
            for block in dirty {
                if self.random.bool() {
                    file.write(block, self.block_bytes);
                }
            }
            if file.seen.len() > file.on_disk.len() && self.random.bool() {
                let length = self.random.usize(file.on_disk.len()..=file.seen.len());
                file.on_disk.resize(length, 0);
            }
            file.seen = file.on_disk.clone();
            file.lost.clear();
        }
    }

    /// Reads some blocks from the disk again that need not be in memory.
    pub fn evict(&mut self) {
        for file in &mut self.files {
            for block in 0..file.seen.len().div_ceil(self.block_bytes) {
                if !file.dirty.contains(&block) && self.random.bool() {
                    file.reread(block, self.block_bytes);
                }
            }
        }
    }

    /// Changes a bit of the log or the mark; returns how to undo it.
    pub fn flip(&mut self) -> impl FnOnce(&mut Disk) + use<> {
        let name = if self.random.u8(..4) == 0 { MARK } else { LOG };
        let id = self.names.seen.get(name).copied();
        let before = id.map(|id| (id, self.files[id].clone()));
        if let Some(id) = id
            && !self.files[id].seen.is_empty()
        {
            let at = self.random.usize(..self.files[id].seen.len());
            let bit = 1 << self.random.u8(..8);
            self.files[id].seen[at] ^= bit;
            if let Some(byte) = self.files[id].on_disk.get_mut(at) {
                *byte ^= bit;
            }
        }
        move |disk| {
            if let Some((id, file)) = before {
                disk.files[id] = file;
            }
        }
    }

    pub fn log(&self) -> &[u8] {
        let id = self.names.seen.get(LOG);
        id.map_or(&[], |&id| &self.files[id].seen)
    }

    fn file(&mut self, name: &'static str) -> &mut Blocks {
        let id = *self.names.seen.entry(name).or_insert(self.files.len());
        if id == self.files.len() {
            self.files.push(Blocks::default());
        }
        &mut self.files[id]
    }

    /// Counts a step; returns the fault that strikes here.
    fn step(
        &mut self,
        doing: &'static str,
        can_strike: &[Fault],
    ) -> Result<Option<Fault>, LogError> {
        if let Some((left, fault)) = &mut self.plan {
            *left = left.saturating_sub(1);
            let fault = *fault;
            if *left == 0 && (fault == Fault::Kill || can_strike.contains(&fault)) {
                self.plan = None;
                self.struck = Some(fault);
                if fault != Fault::Kill {
                    return Ok(Some(fault));
                }
            }
        }
        match self.struck {
            Some(Fault::Kill) => Err(broken(doing)),
            _ => Ok(None),
        }
    }

    fn append(&mut self, name: &'static str, bytes: &[u8]) -> Result<(), LogError> {
        let fault = self.step("write to", &[Fault::FailWrite])?;
        let written = match fault {
            Some(_) => self.random.usize(..=bytes.len()),
            None => bytes.len(),
        };
        let at = self.file(name).seen.len();
        self.write_at(name, at, &bytes[..written]);
        fault.map_or(Ok(()), |_| Err(broken("write to")))
    }

    fn write_at(&mut self, name: &'static str, at: usize, bytes: &[u8]) {
        let block_bytes = self.block_bytes;
        let file = self.file(name);
        let end = at + bytes.len();
        file.seen.resize(file.seen.len().max(end), 0);
        file.seen[at..end].copy_from_slice(bytes);
        file.dirty
            .extend(at / block_bytes..end.div_ceil(block_bytes));
    }

    fn sync(&mut self, name: &'static str) -> Result<(), LogError> {
        let fault = self.step("sync", &[Fault::FailSync, Fault::NoNewBlocks])?;
        let block_bytes = self.block_bytes;
        let mut random = self.random.fork();
        let file = self.file(name);
        let length = file.seen.len();
        let old_blocks = file.on_disk.len().div_ceil(block_bytes);
        for block in std::mem::take(&mut file.dirty) {
            let is_new = block >= old_blocks;
            let is_written = match fault {
                None => true,
                Some(Fault::NoNewBlocks) => !is_new,
                Some(_) => random.bool(),
            };
            if is_written {
                file.write(block, block_bytes);
            } else if is_new {
                file.lost.insert(block);
            }
        }
        if fault.is_none() || random.bool() {
            file.on_disk.resize(length, 0);
        }
        fault.map_or(Ok(()), |_| Err(broken("sync")))
    }

    fn rename(&mut self, to: &'static str) -> Result<(), LogError> {
        self.step("rename", &[])?;
        let id = self.names.seen.remove(COPY).expect("a copy");
        self.names.seen.insert(to, id);
        let fault = self.step("sync the directory", &[Fault::FailSync])?;
        if fault.is_none() || self.random.bool() {
            self.names.on_disk = self.names.seen.clone();
        }
        fault.map_or(Ok(()), |_| Err(broken("sync the directory")))
    }
}

impl Blocks {
    fn range(&self, block: usize, block_bytes: usize) -> std::ops::Range<usize> {
        let start = (block * block_bytes).min(self.seen.len());
        start..(start + block_bytes).min(self.seen.len())
    }

    fn write(&mut self, block: usize, block_bytes: usize) {
        let range = self.range(block, block_bytes);
        self.on_disk.resize(self.on_disk.len().max(range.end), 0);
        if !self.lost.contains(&block) {
            self.on_disk[range.clone()].copy_from_slice(&self.seen[range]);
        }
    }

    fn reread(&mut self, block: usize, block_bytes: usize) {
        for at in self.range(block, block_bytes) {
            self.seen[at] = self.on_disk.get(at).copied().unwrap_or(0);
        }
    }
}

fn broken(doing: &'static str) -> LogError {
    failed(doing, Path::new("model"))(io::Error::other("a fault of the test"))
}

/// The disk as one process sees it.
#[derive(Clone)]
pub struct ModelStorage {
    pub disk: Arc<Mutex<Disk>>,
    path: PathBuf,
}

impl ModelStorage {
    pub fn new(disk: Disk) -> ModelStorage {
        ModelStorage {
            disk: Arc::new(Mutex::new(disk)),
            path: PathBuf::from("model"),
        }
    }
}

impl Storage for ModelStorage {
    fn path(&self) -> &Path {
        &self.path
    }

    fn length(&self) -> Result<u64, LogError> {
        Ok(self.disk.lock().log().len() as u64)
    }

    fn read_at(&self, at: u64, into: &mut [u8]) -> Result<usize, LogError> {
        let mut disk = self.disk.lock();
        disk.step("read", &[])?;
        let rest = disk.log().get(at as usize..).unwrap_or_default();
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        self.disk.lock().append(LOG, bytes)
    }

    fn sync(&mut self) -> Result<(), LogError> {
        self.disk.lock().sync(LOG)
    }

    fn copy(&mut self, bytes: u64, each: &mut dyn FnMut(&[u8])) -> Result<(), LogError> {
        let mut disk = self.disk.lock();
        if disk.random.u8(..8) == 0 {
            disk.evict();
        }
        let content = disk.log()[..bytes as usize].to_vec();
        each(&content);
        if !disk.copies {
            disk.file(LOG).seen.truncate(content.len());
            return disk.sync(LOG);
        }
        disk.names.seen.remove(COPY);
        disk.append(COPY, &content)?;
        disk.sync(COPY)
    }

    fn adopt(&mut self) -> Result<(), LogError> {
        let mut disk = self.disk.lock();
        match disk.copies {
            true => disk.rename(LOG),
            false => Ok(()),
        }
    }

    fn mark(&self) -> Result<Option<Vec<u8>>, LogError> {
        let mut disk = self.disk.lock();
        disk.step("read", &[])?;
        let id = disk.names.seen.get(MARK);
        Ok(id.map(|&id| disk.files[id].seen.clone()))
    }

    fn new_mark(&mut self, block: &[u8]) -> Result<(), LogError> {
        let mut disk = self.disk.lock();
        disk.names.seen.remove(COPY);
        disk.append(COPY, block)?;
        disk.sync(COPY)?;
        disk.rename(MARK)
    }

    fn write_mark(&mut self, block: &[u8]) -> Result<(), LogError> {
        let mut disk = self.disk.lock();
        disk.step("write to", &[])?;
        disk.write_at(MARK, 0, block);
        Ok(())
    }

    fn sync_mark(&mut self) -> Result<(), LogError> {
        self.disk.lock().sync(MARK)
    }
}
