//! The meaning of OLD and NEW: files, folders, names.

use super::*;
use crate::cli::overview::BASELINE;
use crate::run::{RESULT, SCENARIO};
use std::collections::{BTreeMap, BTreeSet};

pub const LATEST: &str = "latest";

/// One result, or the results of many scenarios by name.
#[derive(Debug, PartialEq)]
pub enum Side {
    One(PathBuf),
    Many {
        folder: PathBuf,
        results: BTreeMap<String, PathBuf>,
    },
}

/// Two results to compare; `None` if a side has none.
pub struct Pair {
    /// The scenario's name, or the paths of both files.
    pub called: String,
    pub old: Option<PathBuf>,
    pub new: Option<PathBuf>,
}

impl Side {
    pub fn find(
        text: &str,
        results: &impl Fn() -> Result<PathBuf, Failure>,
    ) -> Result<Side, Failure> {
        match text {
            LATEST => return Side::many(&results()?),
            BASELINE => return Side::many(&results()?.join(BASELINE)),
            _ => {}
        }
        let path = Path::new(text);
        if let Ok(about) = path.symlink_metadata()
            && !path.is_dir()
        {
            // Follow a link that the user named, and no link after it.
            let leads_to = path.canonicalize().ok().filter(|_| about.is_symlink());
            return Ok(Side::One(leads_to.unwrap_or_else(|| path.to_owned())));
        }
        if path.is_dir() {
            return match result_in(path) {
                Some(result) => Ok(Side::One(result)),
                None if path.join(SCENARIO).symlink_metadata().is_ok() => Err(Failure::new(
                    Exit::Inconclusive,
                    format!("{text}: the run ended before it wrote a {RESULT}"),
                )),
                None => Side::many(path),
            };
        }
        if text.contains('/') {
            return Err(Failure::usage(format!("there is no file or folder {text}")));
        }
        let (scenario, which) = text.split_once('@').unwrap_or((text, LATEST));
        let results = results()?;
        let folder = match which {
            LATEST => results.join(scenario),
            BASELINE => results.join(BASELINE).join(scenario),
            other => {
                let message = format!("`{text}`: `@{other}` is neither @latest nor @baseline");
                return Err(Failure::usage(message));
            }
        };
        let found = result_in(&folder).filter(|_| !scenario.is_empty());
        found.map(Side::One).ok_or_else(|| {
            let around = folder.parent().unwrap_or(&folder);
            let known: Vec<String> = results_below(around).into_keys().collect();
            let known = if known.is_empty() {
                "no scenario has one there".to_owned()
            } else {
                format!("there are those of {}", known.join(", "))
            };
            let shown = around.display();
            let message = "neither a file, nor a folder, nor a scenario with a result in";
            Failure::usage(format!("`{text}` is {message} {shown}; {known}"))
        })
    }

    fn many(folder: &Path) -> Result<Side, Failure> {
        let results = results_below(folder);
        let shown = folder.display();
        if results.is_empty() {
            Err(Failure::usage(format!(
                "{shown} has no results: neither a {RESULT}, nor SCENARIO/{RESULT}, nor SCENARIO/{LATEST}/{RESULT}"
            )))
        } else {
            Ok(Side::Many {
                folder: folder.to_owned(),
                results,
            })
        }
    }
}

/// Pairs the results that belong together. A single result is compared with the one of its own
/// scenario among many.
pub fn pairs(old: Side, new: Side) -> Result<Vec<Pair>, Failure> {
    let (called, old, new) = match (old, new) {
        (Side::One(old), Side::One(new)) => {
            let called = format!("{} and {}", old.display(), new.display());
            (called, old, new)
        }
        (Side::One(old), Side::Many { folder, results }) => {
            let (called, new) = counterpart(&old, &folder, &results)?;
            (called, old, new)
        }
        (Side::Many { folder, results }, Side::One(new)) => {
            let (called, old) = counterpart(&new, &folder, &results)?;
            (called, old, new)
        }
        (Side::Many { results: old, .. }, Side::Many { results: new, .. }) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let pair = |name: &String| Pair {
                called: name.clone(),
                old: old.get(name).cloned(),
                new: new.get(name).cloned(),
            };
            return Ok(names.into_iter().map(pair).collect());
        }
    };
    Ok(vec![Pair {
        called,
        old: Some(old),
        new: Some(new),
    }])
}

fn counterpart(
    one: &Path,
    folder: &Path,
    many: &BTreeMap<String, PathBuf>,
) -> Result<(String, PathBuf), Failure> {
    let not_comparable = |reason: String| Failure::new(Exit::Inconclusive, reason);
    let name = read_result(one)
        .map_err(not_comparable)?
        .stable
        .scenario
        .name;
    match many.get(name.as_str()) {
        Some(other) => Ok((name.into(), other.clone())),
        None => {
            let (one, folder) = (one.display(), folder.display());
            let reason = format!("{one} is a run of {name}, and {folder} has none of that");
            Err(not_comparable(reason))
        }
    }
}

/// Returns the result of a run's folder, or of a scenario's latest run. For a latest run
/// without a result it still returns the path, so that the error can name it.
fn result_in(folder: &Path) -> Option<PathBuf> {
    let own = folder.join(RESULT);
    if own.symlink_metadata().is_ok() {
        return Some(own);
    }
    let latest = folder.join(LATEST);
    latest.is_dir().then(|| latest.join(RESULT))
}

fn results_below(folder: &Path) -> BTreeMap<String, PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let results = entries.filter_map(|entry| {
        let name = entry.file_name().to_str()?.to_owned();
        Some((name, result_in(&entry.path())?))
    });
    results.collect()
}
