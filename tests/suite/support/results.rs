//! Results of real runs, and folders of them that a test may change.

use super::read::json;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Returns the result of a real run of pause-gt-ttl: `good`, `again`, or with a `mutant`.
pub fn real(name: &str) -> String {
    let path = format!("tests/results/pause-gt-ttl/{name}/result.json");
    super::project()
        .join(path)
        .to_str()
        .expect("a plain path")
        .to_owned()
}

pub fn good() -> Value {
    json(Path::new(&real("good")))
}

/// A folder of results that a test may change.
pub struct Results {
    folder: TempDir,
}

impl Results {
    pub fn new() -> Results {
        Results {
            folder: tempfile::tempdir().expect("a temporary folder"),
        }
    }

    pub fn path(&self) -> &str {
        self.folder.path().to_str().expect("a plain path")
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a temporary folder");
        fs::write(&path, content).expect("a temporary file");
        path.to_str().expect("a plain path").to_owned()
    }

    /// Writes a run in its own folder, and makes `latest` point to it.
    pub fn run(&self, scenario: &str, result: &Value) -> PathBuf {
        self.write(&format!("{scenario}/1/result.json"), result.to_string());
        let latest = self.folder.path().join(scenario).join("latest");
        std::os::unix::fs::symlink("1", latest).expect("a link");
        self.folder.path().join(scenario).join("1")
    }

    pub fn baseline(&self, scenario: &str, result: &Value) {
        let name = format!("baseline/{scenario}/result.json");
        self.write(&name, result.to_string());
    }
}
