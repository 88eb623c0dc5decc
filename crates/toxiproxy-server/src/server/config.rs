//! The file of `-config`: the array of `/populate`, with toxics.

use super::*;
use bounded_io::files::{self, Links};
use serde::Deserialize;
use serde_json::Value;
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
    Wrong { path: PathBuf, error: String },
}

pub fn read_config(path: &Path) -> Result<Vec<ConfiguredProxy>, ConfigError> {
    let owned = || path.to_owned();
    let text = files::read(path, Links::Follow, files::BY_HAND);
    let text = text.map_err(|error| ConfigError::Unreadable {
        path: owned(),
        error,
    })?;
    let values: Result<Vec<Value>, _> = serde_json::from_slice(&text);
    let wrong = |error: String| ConfigError::Wrong {
        path: owned(),
        error,
    };
    let numbered = (1..).zip(values.map_err(|error| wrong(error.to_string()))?);
    let read = |(at, value): (usize, Value)| {
        go_json::read(value).map_err(|error| wrong(format!("proxy {at}: {error}")))
    };
    numbered.map(read).collect()
}
