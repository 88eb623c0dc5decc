//! The results folder of one run.

use super::time_stamp::time_stamp;
use crate::report::shown;
use serde::Serialize;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

pub const SCENARIO: &str = "scenario.yml";
pub const RESULT: &str = "result.json";
pub const JUNIT: &str = "junit.xml";
pub const REPORT: &str = "report.html";

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("cannot write {}: {source}{}", path.display(), remedy(source))]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "cannot write {}: {source}; make it writable, or copy the folder to where there is room and make the page there with `fencepost report`",
        path.display()
    )]
    Page { path: PathBuf, source: io::Error },
    #[error(
        "cannot write {}, where it is kept what has to be undone: {source}; set XDG_STATE_HOME to another folder",
        path.display()
    )]
    Journals { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}:{line}: this row is not what a run writes: {}", path.display(), shown::line(reason))]
    Row {
        path: PathBuf,
        line: usize,
        reason: String,
    },
}

impl FolderError {
    /// A page is made again at any time, by commands that choose no folder.
    pub fn of_a_page(self) -> FolderError {
        match self {
            FolderError::Write { path, source } => FolderError::Page { path, source },
            other => other,
        }
    }
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull => "; free some space, or choose another folder with --results",
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::AlreadyExists => "; choose another folder with --results",
        _ => "",
    }
}

/// `results/<scenario>/<time>-<seed>/`.
#[derive(Clone, Debug)]
pub struct RunFolder {
    pub path: PathBuf,
}

impl RunFolder {
    /// Whether there will be a place for results, before anything takes its time.
    pub fn check(results: &Path, scenario: &str) -> Result<(), FolderError> {
        make_folder(&results.join(scenario))
    }

    pub fn create(
        results: &Path,
        scenario: &str,
        seed: u64,
        text: &str,
    ) -> Result<RunFolder, FolderError> {
        let parent = results.join(scenario);
        make_folder(&parent)?;
        let stamp = time_stamp(SystemTime::now());
        let mut path = parent.join(format!("{stamp}-{seed}"));
        // Two runs in one millisecond: bounded, since each try is another name.
        for attempt in 2..100 {
            match fs::create_dir(&path) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    path = parent.join(format!("{stamp}-{seed}-{attempt}"));
                }
                Err(error) => return Err(write_failed(&path)(error)),
            }
        }
        let folder = RunFolder { path };
        folder.write(SCENARIO, text.as_bytes())?;
        folder.point_latest(&parent)?;
        Ok(folder)
    }

    /// Whole or not at all: under another name first, then moved.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        write_whole(&self.path.join(name), content)
    }

    pub fn case(&self, case: &str) -> PathBuf {
        self.path.join(case)
    }

    fn point_latest(&self, parent: &Path) -> Result<(), FolderError> {
        let latest = parent.join("latest");
        // Runs side by side must not trip over each other's links.
        let new = parent.join(format!(".latest.{}", std::process::id()));
        let target = self.path.file_name().unwrap_or_default();
        let _ = fs::remove_file(&new);
        std::os::unix::fs::symlink(target, &new).map_err(write_failed(&new))?;
        fs::rename(&new, &latest).map_err(write_failed(&latest))
    }
}

/// Pretty, with sorted keys and a newline at the end, so that a plain `diff`
/// of two results is short.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    let value = serde_json::to_value(value).unwrap_or_default();
    let mut bytes = serde_json::to_vec_pretty(&value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// With all folders above it; one that is there already is as good.
pub fn make_folder(path: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(path).map_err(write_failed(path))
}

/// Whoever reads sees the old content or the new, and nothing between.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    Aside::write(path, content)?.take_place()
}

/// A file that is written and has not taken its place yet; one that never does is removed.
pub struct Aside {
    path: PathBuf,
    aside: PathBuf,
}

impl Aside {
    /// Beside its place, under a name that no other writer of this machine uses.
    pub fn write(path: &Path, content: &[u8]) -> Result<Aside, FolderError> {
        static WRITTEN: AtomicU64 = AtomicU64::new(0);
        let count = WRITTEN.fetch_add(1, Ordering::Relaxed);
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(format!(".{}.{count}", std::process::id()));
        let file = Aside {
            path: path.to_owned(),
            aside: path.with_file_name(name),
        };
        fs::write(&file.aside, content).map_err(write_failed(path))?;
        Ok(file)
    }

    pub fn take_place(self) -> Result<(), FolderError> {
        fs::rename(&self.aside, &self.path).map_err(write_failed(&self.path))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // Gone already where it took its place.
        let _ = fs::remove_file(&self.aside);
    }
}

pub fn write_failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    |source| FolderError::Write { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_cannot_be_written_is_no_reason_for_an_option_that_no_report_has() {
        let denied =
            || write_failed(Path::new("report.html"))(io::ErrorKind::PermissionDenied.into());
        assert!(denied().to_string().contains("--results"));
        let page = denied().of_a_page().to_string();
        assert!(!page.contains("--results"), "{page}");
        assert!(
            page.contains("report.html") && page.contains("fencepost report"),
            "{page}"
        );
    }

    #[test]
    fn the_newest_run_is_the_latest() {
        let results = tempfile::tempdir().unwrap();
        RunFolder::create(results.path(), "s", 1, "text").unwrap();
        let second = RunFolder::create(results.path(), "s", 1, "text").unwrap();
        let latest = fs::canonicalize(results.path().join("s/latest")).unwrap();
        assert_eq!(latest, fs::canonicalize(&second.path).unwrap());
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn many_writers_of_one_file_do_not_meet_half_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.html");
        let contents: Vec<Vec<u8>> = (0..8).map(|n| vec![b'a' + n; 100_000]).collect();
        std::thread::scope(|scope| {
            for content in &contents {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..25 {
                        write_whole(path, content).unwrap();
                    }
                });
            }
        });
        assert!(contents.contains(&fs::read(&path).unwrap()));
        assert_eq!(names(folder.path()), ["index.html"]);
    }

    #[test]
    fn what_cannot_take_its_place_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        let error = write_whole(&path, b"text").unwrap_err().to_string();
        assert!(error.starts_with("cannot write "), "{error}");
        assert_eq!(names(folder.path()), ["taken"]);
    }
}
