//! What a case leaves on disk, written row by row as it happens, so that a
//! killed run keeps its evidence.

use super::folder::{FolderError, make_folder, to_json, write_failed, write_whole};
use crate::files;
use crate::model::{CaseNotes, Event, FaultRow, LoadRecord, LockEvent, LogRow, Name};
use serde::Serialize;
use std::fs::File;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

pub const HISTORY: &str = "history.jsonl";
pub const ACCEPTED: &str = "accepted.jsonl";
pub const FAULTS: &str = "faults.jsonl";
pub const LOCKS: &str = "locks.jsonl";
/// Only of a load.
pub const ARRIVALS: &str = "arrivals.jsonl";
pub const NOTES: &str = "case.json";

/// Why a case has no more than what it wrote as it went.
pub const NOT_COLLECTED: &str = "the run ended before this case was collected";

/// The growing files of one case.
pub struct Evidence {
    folder: PathBuf,
    history: Mutex<File>,
    accepted: Mutex<File>,
    faults: Mutex<File>,
    locks: Mutex<File>,
    /// Who makes a load, and what it came to so far.
    load: Mutex<Option<(Vec<String>, LoadRecord)>>,
    /// The first row that could not be written. A full disk must end the case,
    /// and the writers are in places that cannot.
    broken: OnceLock<(PathBuf, Error)>,
}

impl Evidence {
    pub fn create(folder: PathBuf) -> Result<Evidence, FolderError> {
        let logs = folder.join("logs");
        make_folder(&logs)?;
        let open = |name: &str| {
            let path = folder.join(name);
            let file = files::create(&path, files::FOR_ALL).map_err(write_failed(&path))?;
            Ok::<_, FolderError>(Mutex::new(file))
        };
        Ok(Evidence {
            history: open(HISTORY)?,
            accepted: open(ACCEPTED)?,
            faults: open(FAULTS)?,
            locks: open(LOCKS)?,
            load: Mutex::default(),
            broken: OnceLock::new(),
            folder,
        })
    }

    pub fn event(&self, event: &Event) {
        self.append(&self.history, HISTORY, event);
    }

    pub fn log_row(&self, row: &LogRow) {
        self.append(&self.accepted, ACCEPTED, row);
    }

    pub fn fault(&self, row: &FaultRow) {
        self.append(&self.faults, FAULTS, row);
    }

    pub fn lock(&self, event: &LockEvent) {
        self.append(&self.locks, LOCKS, event);
    }

    /// The resource's log as it stands at the end, in place of what was
    /// followed so far.
    pub fn complete_log(&self, rows: &[LogRow]) -> Result<(), FolderError> {
        let mut text = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut text, row).map_err(|error| FolderError::Write {
                path: self.folder.join(ACCEPTED),
                source: error.into(),
            })?;
            text.push(b'\n');
        }
        write_whole(&self.folder.join(ACCEPTED), &text)
    }

    pub fn node_log(&self, node: &Name, text: &str) -> Result<(), FolderError> {
        write_whole(
            &self.folder.join("logs").join(format!("{node}.log")),
            text.as_bytes(),
        )
    }

    /// What a load came to so far: should it be the last thing that is written, it
    /// is what is left of it.
    pub fn load(&self, workers: &[String], record: &LoadRecord) {
        let so_far = Some((workers.to_vec(), record.clone()));
        *self.load.lock().unwrap_or_else(PoisonError::into_inner) = so_far;
        let notes = self.so_far(NOT_COLLECTED.to_owned());
        if let Err(FolderError::Write { path, source }) = self.notes(&notes) {
            let _ = self.broken.set((path, source));
        }
    }

    /// The notes of a case that ended too early.
    pub fn so_far(&self, why: String) -> CaseNotes {
        let load = self.load.lock();
        let load = load.unwrap_or_else(PoisonError::into_inner).clone();
        let (workers, load) = load.unzip();
        CaseNotes {
            workers: workers.unwrap_or_default(),
            gaps: vec![why.clone().into()],
            load: load.map(|load| LoadRecord {
                partial: Some(why),
                ..load
            }),
            ..CaseNotes::default()
        }
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn notes(&self, notes: &CaseNotes) -> Result<(), FolderError> {
        write_whole(&self.folder.join(NOTES), &to_json(notes))
    }

    /// Whether every row so far could be written.
    pub fn check(&self) -> Result<(), FolderError> {
        match self.broken.get() {
            None => Ok(()),
            // An error of the system can be told again, but not copied.
            Some((path, error)) => Err(write_failed(path)(Error::new(
                error.kind(),
                error.to_string(),
            ))),
        }
    }

    fn append(&self, file: &Mutex<File>, name: &str, row: &impl Serialize) {
        let mut line = serde_json::to_vec(row).unwrap_or_default();
        line.push(b'\n');
        let mut file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Err(error) = file.write_all(&line) {
            let _ = self.broken.set((self.folder.join(name), error));
        }
    }
}
