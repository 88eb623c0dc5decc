//! The results folder of one run.

use super::time_stamp::time_stamp;
use super::*;
use crate::report::shown;
use serde::Serialize;
use std::time::SystemTime;
use std::{fs, io};

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
    /// Makes it the error of a page, which commands that choose no folder make again at any time.
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

/// The folder `results/<scenario>/<time>-<seed>/`.
#[derive(Clone, Debug)]
pub struct RunFolder {
    pub path: PathBuf,
}

impl RunFolder {
    /// Checks that there is a place for results, before anything takes its time.
    pub fn check(results: &Path, scenario: &Name) -> Result<(), FolderError> {
        make_folder_in(results, scenario).map(drop)
    }

    pub fn create(
        results: &Path,
        scenario: &Name,
        seed: u64,
        text: &str,
    ) -> Result<RunFolder, FolderError> {
        let parent = make_folder_in(results, scenario)?;
        let stamp = time_stamp(SystemTime::now());
        let mut path = parent.join(format!("{stamp}-{seed}"));
        // Two runs may begin in one millisecond. Each try is another name, so the tries are
        // bounded.
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

    /// Writes a file whole or not at all: under another name first, then moved.
    pub fn write(&self, name: &str, content: &[u8]) -> Result<(), FolderError> {
        write_whole(&self.path.join(name), content)
    }

    pub fn case(&self, case: &Name) -> PathBuf {
        self.path.join(case)
    }

    fn point_latest(&self, parent: &Path) -> Result<(), FolderError> {
        let latest = parent.join("latest");
        let target = Path::new(self.path.file_name().unwrap_or_default());
        files::link_whole(&latest, target).map_err(write_failed(&latest))
    }
}

/// Formats a value with indentation, sorted keys and a newline at the end, so that a plain `diff`
/// of two results is short.
pub fn to_json(value: &impl Serialize) -> Vec<u8> {
    let value = serde_json::to_value(value).unwrap_or_default();
    let mut bytes = serde_json::to_vec_pretty(&value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Makes a folder with all folders above it, unless it is there already. A person may have put a
/// link in place of a folder of results.
pub fn make_folder(path: &Path) -> Result<(), FolderError> {
    fs::create_dir_all(path).map_err(write_failed(path))
}

/// Makes a folder within one of results, where somebody else may have planted a link.
pub fn make_folder_in(parent: &Path, name: &str) -> Result<PathBuf, FolderError> {
    let path = parent.join(name);
    match files::is_folder(&path) {
        Ok(true) => {}
        Ok(false) => make_folder(&path)?,
        Err(error) => return Err(write_failed(&path)(error)),
    }
    Ok(path)
}

/// Writes a file so that a reader sees the old content or the new, and nothing between.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    files::write_whole(path, content, files::FOR_ALL).map_err(write_failed(path))
}

pub fn read_failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    |source| FolderError::Read { path, source }
}

pub fn write_failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    |source| FolderError::Write { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

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
        RunFolder::create(results.path(), &"s".into(), 1, "text").unwrap();
        let second = RunFolder::create(results.path(), &"s".into(), 1, "text").unwrap();
        let latest = fs::canonicalize(results.path().join("s/latest")).unwrap();
        assert_eq!(latest, fs::canonicalize(&second.path).unwrap());
    }

    fn names(folder: &Path) -> Vec<OsString> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
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
