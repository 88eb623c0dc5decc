//! The rows of a load. There are too many for a write to the disk each: they are
//! gathered, and written when there are enough of them or when somebody says so.

use crate::files;
use crate::load::Recorder;
use crate::model::{ArrivalRow, Event, EventKind, Step};
use crate::run::FolderError;
use crate::run::evidence::{ARRIVALS, HISTORY};
use crate::run::folder::write_failed;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

const GATHERED_BYTES: usize = 64 * 1024;

pub struct Recording {
    folder: PathBuf,
    history: Mutex<BufWriter<File>>,
    arrivals: Mutex<BufWriter<File>>,
    /// Those who said that they are ready.
    workers: Mutex<BTreeSet<String>>,
    unanswered: AtomicBool,
    /// The first thing that could not be written.
    broken: OnceLock<(PathBuf, io::Error)>,
}

impl Recording {
    pub fn open(folder: &Path) -> Result<Recording, FolderError> {
        let open = |name: &str, open: fn(&Path) -> io::Result<File>| {
            let path = folder.join(name);
            let file = open(&path).map_err(write_failed(&path))?;
            let file = BufWriter::with_capacity(GATHERED_BYTES, file);
            Ok::<_, FolderError>(Mutex::new(file))
        };
        Ok(Recording {
            folder: folder.to_owned(),
            // Every case has one from its beginning.
            history: open(HISTORY, files::append_private)?,
            arrivals: open(ARRIVALS, |path| files::create(path, files::FOR_ALL))?,
            workers: Mutex::default(),
            unanswered: AtomicBool::new(false),
            broken: OnceLock::new(),
        })
    }

    pub fn flush(&self) {
        for (file, name) in [(&self.history, HISTORY), (&self.arrivals, ARRIVALS)] {
            let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
            self.note(file.flush(), name);
        }
    }

    /// Whether everything so far could be written.
    pub fn check(&self) -> Result<(), FolderError> {
        match self.broken.get() {
            None => Ok(()),
            // An error of the system can be told again, but not copied.
            Some((path, error)) => Err(write_failed(path)(io::Error::new(
                error.kind(),
                error.to_string(),
            ))),
        }
    }

    pub fn workers(&self) -> Vec<String> {
        let workers = self.workers.lock();
        let workers = workers.unwrap_or_else(PoisonError::into_inner);
        workers.iter().cloned().collect()
    }

    /// Whether a write got no answer.
    pub fn unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }

    fn append(&self, file: &Mutex<BufWriter<File>>, name: &str, row: &impl Serialize) {
        let mut line = serde_json::to_vec(row).unwrap_or_default();
        line.push(b'\n');
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        self.note(file.write_all(&line), name);
    }

    fn note(&self, written: io::Result<()>, name: &str) {
        if let Err(error) = written {
            let _ = self.broken.set((self.folder.join(name), error));
        }
    }
}

impl Recorder for Recording {
    fn event(&self, event: &Event) {
        match &event.kind {
            EventKind::Ready { .. } => {
                let workers = self.workers.lock();
                let mut workers = workers.unwrap_or_else(PoisonError::into_inner);
                workers.insert(event.worker.clone());
            }
            EventKind::Failed {
                during: Step::Write,
                ..
            } => self.unanswered.store(true, Ordering::Relaxed),
            _ => {}
        }
        self.append(&self.history, HISTORY, event);
    }

    fn arrival(&self, row: &ArrivalRow) {
        self.append(&self.arrivals, ARRIVALS, row);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(worker: &str, kind: EventKind) -> Event {
        Event {
            at_ns: 1,
            worker: worker.to_owned(),
            kind,
        }
    }

    #[test]
    fn rows_are_on_disk_once_it_is_said_and_failed_writes_are_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::open(folder.path()).unwrap();
        for worker in ["5-c2", "5-c1"] {
            recording.event(&event(worker, EventKind::Ready { lacks: Vec::new() }));
        }
        assert!(!recording.unanswered());
        let failed = EventKind::Failed {
            round: 1,
            during: Step::Write,
            error: "no answer".to_owned(),
        };
        recording.event(&event("5-c1", failed));
        assert!(recording.unanswered());
        recording.flush();
        recording.check().unwrap();
        let history = std::fs::read_to_string(folder.path().join(HISTORY)).unwrap();
        assert_eq!(history.lines().count(), 3);
        assert_eq!(recording.workers(), ["5-c1", "5-c2"]);
        assert!(folder.path().join(ARRIVALS).exists());
    }
}
