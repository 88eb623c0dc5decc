//! The file of `-config`: the array of `/populate`, with toxics.

use super::*;
use bounded_io::files::{self, Links};
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ConfiguredProxy {
    #[serde(flatten)]
    pub proxy: NewProxy,
    #[serde(default)]
    pub toxics: Vec<Toxic>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read the config {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error(
        "the config {}: {error}; it is an array of {{\"name\",\"listen\",\"upstream\",\"enabled\",\"toxics\"}}",
        path.display()
    )]
    Wrong {
        path: PathBuf,
        error: serde_json::Error,
    },
}

pub fn read_config(path: &Path) -> Result<Vec<ConfiguredProxy>, ConfigError> {
    let owned = || path.to_owned();
    let text = files::read(path, Links::Follow, files::BY_HAND);
    let text = text.map_err(|error| ConfigError::Unreadable {
        path: owned(),
        error,
    })?;
    serde_json::from_slice(&text).map_err(|error| ConfigError::Wrong {
        path: owned(),
        error,
    })
}
