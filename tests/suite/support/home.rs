use super::project;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A copy of scenarios/, compose/ and toxiproxy/ that a test may break.
pub struct Home {
    folder: TempDir,
}

impl Home {
    pub fn new() -> Home {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for part in ["scenarios", "compose", "toxiproxy"] {
            copy_folder(&project().join(part), &folder.path().join(part));
        }
        Home { folder }
    }

    /// Makes a home without any scenario but these.
    pub fn with_only(scenarios: &[&str]) -> Home {
        let home = Home::new();
        let all = home.file("scenarios");
        let kept: Vec<_> = scenarios
            .iter()
            .map(|name| {
                (
                    name,
                    fs::read(all.join(format!("{name}.yml"))).expect("a scenario"),
                )
            })
            .collect();
        fs::remove_dir_all(&all).expect("a copy");
        fs::create_dir(&all).expect("a temporary folder");
        for (name, text) in kept {
            home.write(&format!("scenarios/{name}.yml"), text);
        }
        home
    }

    pub fn path(&self) -> &str {
        self.folder.path().to_str().expect("a plain path")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.file(name), content).expect("a temporary file");
    }

    /// Returns `FILE:LINE:COLUMN` of the first occurrence of a text.
    #[track_caller]
    pub fn place(&self, name: &str, wanted: &str) -> String {
        let text = fs::read_to_string(self.file(name)).expect("a file of the project");
        let found = text.lines().zip(1..).find_map(|(line, number)| {
            let column = line.find(wanted)? + 1;
            Some(format!("{name}:{number}:{column}"))
        });
        found.unwrap_or_else(|| panic!("{name} has no {wanted:?}"))
    }

    /// Replaces a text, which must be there.
    #[track_caller]
    pub fn replace(&self, name: &str, old: &str, new: &str) {
        let text = fs::read_to_string(self.file(name)).expect("a file of the project");
        assert!(text.contains(old), "{name} has no {old:?}");
        self.write(name, text.replace(old, new));
    }
}

pub fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a temporary folder");
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let path = entry.expect("readable").path();
        let target = to.join(path.file_name().expect("a name"));
        match path.is_dir() {
            true => copy_folder(&path, &target),
            false => {
                fs::copy(&path, &target).expect("a file to copy");
            }
        }
    }
}
