//! The record of a case on disk, written row by row as it happens, so that a killed run keeps its
//! evidence; or in memory, for a case that is played one time of many.

use super::recorded::Rows;
use super::*;
use crate::model::{FaultRow, LoadRecord, LockEvent, Log, LogRow};
use parking_lot::Mutex;
use serde::Serialize;
use std::fs::File;
use std::io::{Error, Write};
use std::sync::OnceLock;

pub const HISTORY: &str = "history.jsonl";
pub const ACCEPTED: &str = "accepted.jsonl";
pub const FAULTS: &str = "faults.jsonl";
pub const LOCKS: &str = "locks.jsonl";
/// Only a load has this file.
pub const ARRIVALS: &str = "arrivals.jsonl";
pub const NOTES: &str = "case.json";

/// The gap of a case that has nothing but the rows which it wrote as it went.
pub const NOT_COLLECTED: &str = "the run ended before this case was collected";

pub struct Evidence {
    folder: PathBuf,
    sink: Sink,
    /// The workers of a load, and its record so far.
    load: Mutex<Option<(Vec<String>, LoadRecord)>>,
    broken: Broken,
}

/// Where the rows go.
enum Sink {
    Files {
        history: Mutex<File>,
        accepted: Mutex<File>,
        faults: Mutex<File>,
        locks: Mutex<File>,
    },
    Memory(Box<Mutex<Rows>>),
}

/// The first write that failed. A full disk must end the case, and the writers are in places that
/// cannot end it.
#[derive(Default)]
pub struct Broken(OnceLock<(PathBuf, Error)>);

impl Broken {
    pub fn note(&self, path: PathBuf, written: std::io::Result<()>) {
        if let Err(error) = written {
            let _ = self.0.set((path, error));
        }
    }

    /// Fails if anything so far could not be written.
    pub fn check(&self) -> Result<(), FolderError> {
        let Some((path, error)) = self.0.get() else {
            return Ok(());
        };
        // An error of the system cannot be cloned, only made again.
        let again = Error::new(error.kind(), error.to_string());
        Err(write_failed(path)(again))
    }
}

pub fn append(file: &Mutex<impl Write>, row: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(row).unwrap_or_default();
    line.push(b'\n');
    file.lock().write_all(&line)
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
        let sink = Sink::Files {
            history: open(HISTORY)?,
            accepted: open(ACCEPTED)?,
            faults: open(FAULTS)?,
            locks: open(LOCKS)?,
        };
        Ok(Evidence::new(folder, sink))
    }

    /// Keeps the rows in memory, and nothing else.
    pub fn in_memory() -> Evidence {
        Evidence::new(PathBuf::new(), Sink::Memory(Box::default()))
    }

    fn new(folder: PathBuf, sink: Sink) -> Evidence {
        Evidence {
            folder,
            sink,
            load: Mutex::default(),
            broken: Broken::default(),
        }
    }

    pub fn event(&self, event: &Event) {
        match &self.sink {
            Sink::Files { history, .. } => self.append(history, HISTORY, event),
            Sink::Memory(rows) => rows.lock().history.push(event.clone()),
        }
    }

    pub fn log_row(&self, row: &LogRow) {
        match &self.sink {
            Sink::Files { accepted, .. } => self.append(accepted, ACCEPTED, row),
            Sink::Memory(rows) => rows.lock().log.push(row.clone()),
        }
    }

    pub fn fault(&self, row: &FaultRow) {
        match &self.sink {
            Sink::Files { faults, .. } => self.append(faults, FAULTS, row),
            Sink::Memory(rows) => rows.lock().faults.push(row.clone()),
        }
    }

    pub fn lock(&self, event: &LockEvent) {
        match &self.sink {
            Sink::Files { locks, .. } => self.append(locks, LOCKS, event),
            Sink::Memory(rows) => rows.lock().locks.push(event.clone()),
        }
    }

    /// Takes the rows out of memory; they are on disk otherwise.
    pub fn take_rows(&self) -> Option<Rows> {
        match &self.sink {
            Sink::Files { .. } => None,
            Sink::Memory(rows) => Some(std::mem::take(&mut *rows.lock())),
        }
    }

    /// Writes the resource's log as it is at the end, in place of the rows that were followed so
    /// far.
    pub fn complete_log(&self, rows: &[LogRow]) -> Result<(), FolderError> {
        if let Sink::Memory(memory) = &self.sink {
            memory.lock().log = Log::from_rows(rows.iter().cloned());
            return Ok(());
        }
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

    /// Writes the record of a load so far: if nothing more is written, this is what is left of it.
    pub fn load(&self, workers: &[String], record: &LoadRecord) {
        let so_far = Some((workers.to_vec(), record.clone()));
        *self.load.lock() = so_far;
        let notes = self.so_far(NOT_COLLECTED.to_owned());
        if let Err(FolderError::Write { path, source }) = self.notes(&notes) {
            self.broken.note(path, Err(source));
        }
    }

    /// Returns the notes of a case that ended too early.
    pub fn so_far(&self, why: String) -> CaseNotes {
        let load = self.load.lock().clone();
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

    pub fn check(&self) -> Result<(), FolderError> {
        self.broken.check()
    }

    fn append(&self, file: &Mutex<File>, name: &str, row: &impl Serialize) {
        self.broken.note(self.folder.join(name), append(file, row));
    }
}
