use super::*;
use crate::builtin::Location;
use crate::yaml::suggestion;
use bounded_io::files::Links;
use std::collections::BTreeSet;
use std::io;

/// The scenarios of several folders by name. The first folder that has a name counts.
#[derive(Clone, Debug)]
pub struct Library {
    folders: Vec<Location>,
}

#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("there is no scenario `{name}` in {folders}; {hint}")]
    Missing {
        name: String,
        folders: String,
        hint: String,
    },
    #[error("cannot read {path}: {source}")]
    Unreadable { path: Location, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] InvalidFile),
}

impl Library {
    pub fn new<L: Into<Location>>(folders: impl IntoIterator<Item = L>) -> Library {
        Library {
            folders: folders.into_iter().map(Into::into).collect(),
        }
    }

    pub fn names(&self) -> Result<Vec<String>, LibraryError> {
        let mut names = BTreeSet::new();
        for folder in &self.folders {
            names.extend(folder.names().map_err(|source| LibraryError::Unreadable {
                path: folder.clone(),
                source,
            })?);
        }
        Ok(names.into_iter().collect())
    }

    /// Returns the file of a name, or of a path if one is given.
    pub fn file(&self, name: &str) -> Result<Location, LibraryError> {
        if name.ends_with(".yml") || name.ends_with(".yaml") || name.contains('/') {
            return Ok(Location::from(name));
        }
        let folders = self.folders.iter();
        let mut files = folders.map(|folder| folder.join(format!("{name}.yml")));
        if let Some(file) = files.find(Location::exists) {
            return Ok(file);
        }
        let names = self.names()?;
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let folders: Vec<String> = self.folders.iter().map(ToString::to_string).collect();
        Err(LibraryError::Missing {
            name: name.to_owned(),
            folders: folders.join(" and "),
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
    path: &Location,
    settings: &Settings,
    around: &Surroundings,
) -> Result<Scenario, LibraryError> {
    let links = match around {
        Surroundings::Here { .. } => Links::Follow,
        Surroundings::Recorded => Links::Refuse,
    };
    let text = path.text(links);
    let text = text.map_err(|source| LibraryError::Unreadable {
        path: path.clone(),
        source,
    })?;
    Ok(Scenario::parse(&path.shown(), &text, settings, around)?)
}
