//! What OLD and NEW mean: files, folders, names.

use crate::cli::exit::{Exit, Failure};
use crate::cli::overview::BASELINE;
use crate::cli::recorded::read_result;
use crate::run::{RESULT, SCENARIO};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const LATEST: &str = "latest";

/// One result, or those of many scenarios, by name.
#[derive(Debug, PartialEq)]
pub enum Side {
    One(PathBuf),
    Many {
        folder: PathBuf,
        results: BTreeMap<String, PathBuf>,
    },
}

/// Two results to compare; `None` where one side has none.
pub struct Pair {
    /// The scenario's name, or both files.
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
            // A link that a person names is followed here, and none after this.
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
            let known = match known.is_empty() {
                true => "no scenario has one there".to_owned(),
                false => format!("there are those of {}", known.join(", ")),
            };
            let shown = around.display();
            let message = "neither a file, nor a folder, nor a scenario with a result in";
            Failure::usage(format!("`{text}` is {message} {shown}; {known}"))
        })
    }

    fn many(folder: &Path) -> Result<Side, Failure> {
        let results = results_below(folder);
        let shown = folder.display();
        match results.is_empty() {
            true => Err(Failure::usage(format!(
                "{shown} has no results: neither a {RESULT}, nor SCENARIO/{RESULT}, nor SCENARIO/{LATEST}/{RESULT}"
            ))),
            false => Ok(Side::Many {
                folder: folder.to_owned(),
                results,
            }),
        }
    }
}

/// What belongs together. One result beside many is compared with the one of its
/// own scenario.
pub fn pairs(old: Side, new: Side) -> Result<Vec<Pair>, Failure> {
    let pairs = match (old, new) {
        (Side::One(old), Side::One(new)) => {
            let called = format!("{} and {}", old.display(), new.display());
            vec![Pair {
                called,
                old: Some(old),
                new: Some(new),
            }]
        }
        (Side::One(old), Side::Many { folder, results }) => {
            let (called, new) = counterpart(&old, &folder, &results)?;
            vec![Pair {
                called,
                old: Some(old),
                new: Some(new),
            }]
        }
        (Side::Many { folder, results }, Side::One(new)) => {
            let (called, old) = counterpart(&new, &folder, &results)?;
            vec![Pair {
                called,
                old: Some(old),
                new: Some(new),
            }]
        }
        (Side::Many { results: old, .. }, Side::Many { results: new, .. }) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            let pair = |name: &String| Pair {
                called: name.clone(),
                old: old.get(name).cloned(),
                new: new.get(name).cloned(),
            };
            names.into_iter().map(pair).collect()
        }
    };
    Ok(pairs)
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

/// The result of a run's folder, or of a scenario's latest run. A run that has
/// none yet is named all the same, so that it can be complained about.
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
