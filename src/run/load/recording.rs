//! The rows of a load. There are too many for one write to the disk each: they are gathered, and
//! written when there are enough of them or at a flush.

use super::*;
use crate::load::Recorder;
use crate::model::{ArrivalRow, Event, EventKind, Step};
use crate::run::FolderError;
use crate::run::evidence::{ARRIVALS, Broken, HISTORY, append};
use crate::run::folder::write_failed;
use bounded_io::files;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

const GATHERED_BYTES: usize = 64 * 1024;

pub struct Recording {
    folder: PathBuf,
    history: Mutex<BufWriter<File>>,
    arrivals: Mutex<BufWriter<File>>,
    /// The workers that reported that they are ready.
    workers: Mutex<BTreeSet<String>>,
    unanswered: AtomicBool,
    broken: Broken,
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
            // Every case has this file from its beginning.
            history: open(HISTORY, files::append_private)?,
            arrivals: open(ARRIVALS, |path| files::create(path, files::FOR_ALL))?,
            workers: Mutex::default(),
            unanswered: AtomicBool::new(false),
            broken: Broken::default(),
        })
    }

    pub fn flush(&self) {
        for (file, name) in [(&self.history, HISTORY), (&self.arrivals, ARRIVALS)] {
            self.broken
                .note(self.folder.join(name), file.lock().flush());
        }
    }

    pub fn check(&self) -> Result<(), FolderError> {
        self.broken.check()
    }

    pub fn workers(&self) -> Vec<String> {
        let workers = self.workers.lock();
        workers.iter().cloned().collect()
    }

    pub fn unanswered(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed)
    }

    fn append(&self, file: &Mutex<BufWriter<File>>, name: &str, row: &impl Serialize) {
        self.broken.note(self.folder.join(name), append(file, row));
    }
}

impl Recorder for Recording {
    fn event(&self, event: &Event) {
        match &event.kind {
            EventKind::Ready { .. } => {
                let mut workers = self.workers.lock();
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
            recording.event(&event(worker, EventKind::ready(Vec::new())));
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
