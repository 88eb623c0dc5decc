use super::*;
use crate::yaml::suggestion;
use bounded_io::files::{self, Links};
use std::io;
use std::path::PathBuf;

#[derive(Clone, Debug)]
pub struct Library {
    folder: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("there is no scenario `{name}` in {}; {hint}", folder.display())]
    Missing {
        name: String,
        folder: PathBuf,
        hint: String,
    },
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] InvalidFile),
}

impl Library {
    pub fn new(folder: impl Into<PathBuf>) -> Library {
        Library {
            folder: folder.into(),
        }
    }

    pub fn names(&self) -> Result<Vec<String>, LibraryError> {
        let unreadable = |source| LibraryError::Unreadable {
            path: self.folder.clone(),
            source,
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            if path.extension().is_some_and(|ext| ext == "yml")
                && let Some(stem) = path.file_stem()
            {
                names.push(stem.to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    /// Returns the file of a name, or of a path if one is given.
    pub fn file(&self, name: &str) -> Result<PathBuf, LibraryError> {
        if name.ends_with(".yml") || name.ends_with(".yaml") || name.contains('/') {
            return Ok(PathBuf::from(name));
        }
        let path = self.folder.join(format!("{name}.yml"));
        if path.exists() {
            return Ok(path);
        }
        let names = self.names()?;
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        Err(LibraryError::Missing {
            name: name.to_owned(),
            folder: self.folder.clone(),
            hint: suggestion(name, &known),
        })
    }

    pub fn load(
        &self,
        name: &str,
        settings: &Settings,
        around: &Surroundings,
    ) -> Result<Scenario, LibraryError> {
        load_file(&self.file(name)?, settings, around)
    }
}

/// Loads one file. A person may name a link; a link in the folder of a run may have been planted
/// there, so it is refused.
pub fn load_file(
    path: &Path,
    settings: &Settings,
    around: &Surroundings,
) -> Result<Scenario, LibraryError> {
    let links = match around {
        Surroundings::Here { .. } => Links::Follow,
        Surroundings::Recorded => Links::Refuse,
    };
    let text = files::read_text(path, links, files::BY_HAND);
    let text = text.map_err(|source| LibraryError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    Ok(Scenario::parse(path, &text, settings, around)?)
}
