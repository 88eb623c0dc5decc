//! The overview of all runs below a folder: reads the runs and writes the page.

use super::*;
use crate::report::document::ResultDocument;
use crate::report::html::GENERATOR;
use crate::report::index::{self, History, Run, RunDigest, is_of_a_run};
use crate::run::{FolderError, REPORT, RESULT, SCENARIO, write_whole};
use bounded_io::files::{self, Links};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;

pub const BASELINE: &str = "baseline";
const INDEX: &str = "index.html";

/// The most runs shown of a scenario. The newest of thousands are enough to see the trend.
const MOST_RUNS: usize = 200;

/// Writes `DIR/index.html`.
pub fn write(results: &Path) -> Result<PathBuf, Failure> {
    let histories = histories(results)?;
    let has_results = |one: &History| !one.runs.is_empty() || one.baseline.is_some();
    if !histories.iter().any(has_results) {
        let shown = results.display();
        if histories.iter().any(|one| is_of_a_run(&one.scenario)) {
            return Err(Failure::usage(format!(
                "{shown} holds the runs of one scenario; name the folder above it"
            )));
        }
        return Err(Failure::usage(format!(
            "{shown} has no runs: neither SCENARIO/RUN/{RESULT} nor {BASELINE}/SCENARIO/{RESULT}"
        )));
    }
    let path = results.join(INDEX);
    check_is_ours(&path)?;
    write_whole(&path, index::page(&histories).as_bytes()).map_err(FolderError::of_a_page)?;
    Ok(path)
}

/// Refuses to overwrite a page that fencepost did not make.
fn check_is_ours(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    let text = match files::read(path, Links::Refuse, files::DOCUMENT) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => {
            return Err(Failure::harness(format!(
                "cannot read {shown}: {error}; move it away"
            )));
        }
    };
    // The first version of these pages had only this title and no generator.
    if text.contains(GENERATOR) || text.contains("<title>Runs of fencepost</title>") {
        Ok(())
    } else {
        Err(Failure::usage(format!(
            "{shown} is there and was not made by fencepost; move it away, or name a folder of results"
        )))
    }
}

/// Returns every scenario that has a folder here or a baseline.
fn histories(results: &Path) -> Result<Vec<History>, Failure> {
    let unreadable = |folder: &Path, error: std::io::Error| {
        let shown = folder.display();
        Failure::usage(format!("cannot read the folder {shown}: {error}"))
    };
    let folders = folders(results).map_err(|error| unreadable(results, error))?;
    let baseline = results.join(BASELINE);
    let blessed = match self::folders(&baseline) {
        // A missing baseline only means that there is nothing to compare with.
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        read => read.map_err(|error| unreadable(&baseline, error))?,
    };
    let names = folders.into_iter().filter(|name| name != BASELINE);
    let names: BTreeSet<OsString> = names.chain(blessed).collect();
    Ok(names
        .into_iter()
        .map(|name| history(results, name))
        .collect())
}

fn history(results: &Path, scenario: OsString) -> History {
    let folder = results.join(&scenario);
    let called = scenario.to_string_lossy().into_owned();
    let mut remarks = Vec::new();
    let names = folders(&folder).unwrap_or_else(|error| {
        // A scenario may have a baseline and no runs.
        if error.kind() != ErrorKind::NotFound {
            remarks.push(format!("Its folder cannot be read: {error}."));
        }
        Vec::new()
    });
    let (mut names, others): (Vec<_>, Vec<_>) = names
        .into_iter()
        .partition(|name| is_of_a_run(&name.to_string_lossy()));
    // The names begin with the time, so this sorts by time.
    names.sort();
    remarks.extend(not_runs(others));
    let older = names.len().saturating_sub(MOST_RUNS);
    let runs = names.into_iter().skip(older).map(|name| {
        let place = folder.join(&name);
        let file = [REPORT, RESULT]
            .into_iter()
            .find(|file| is_file(&place.join(file)));
        let link = [&scenario, &name].map(|part| encoded(part)).join("/");
        Run {
            link: format!("{link}/{}", file.unwrap_or_default()),
            seen: seen(&place, &called),
            name: name.to_string_lossy().into_owned(),
        }
    });
    let runs = runs.collect();
    let baseline = results.join(BASELINE).join(&scenario);
    let is_blessed = baseline.symlink_metadata().is_ok();
    History {
        runs,
        older,
        remarks,
        baseline: is_blessed.then(|| seen(&baseline, &called)),
        scenario: called,
    }
}

fn is_file(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_file())
}

/// Returns a remark about these folders. Their age is unknown, so they are not among the runs.
fn not_runs(mut names: Vec<OsString>) -> Option<String> {
    names.sort();
    let names: Vec<_> = names.iter().map(|name| name.to_string_lossy()).collect();
    let names = (!names.is_empty()).then(|| names.join(", "))?;
    Some(format!(
        "Not taken for runs, since their names do not begin with a time: {names}."
    ))
}

/// Returns a result, or the reason why there is none, without the path: that is shown beside it.
fn seen(folder: &Path, scenario: &str) -> Result<RunDigest, String> {
    files::is_folder(folder).map_err(|error| format!("it cannot be read: {error}"))?;
    let path = folder.join(RESULT);
    if let Err(error) = path.symlink_metadata()
        && error.kind() == ErrorKind::NotFound
    {
        return Err(if is_file(&folder.join(SCENARIO)) {
            format!("the run ended before it wrote a {RESULT}")
        } else {
            format!("it is not a run: it has neither {RESULT} nor {SCENARIO}")
        });
    }
    let result = read_result(&path).map_err(|error| {
        let place = format!("{}: ", path.display());
        error.strip_prefix(&place).unwrap_or(&error).to_owned()
    })?;
    let ResultDocument { stable, .. } = &result;
    if stable.scenario.name == scenario {
        Ok(RunDigest::of(&result))
    } else {
        Err(format!("it is a run of {}", stable.scenario.name))
    }
}

/// Returns the names of the folders in this folder, without links (`latest`) and hidden ones.
pub fn folders(folder: &Path) -> std::io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        if entry.file_type()?.is_dir() && !is_hidden {
            names.push(name);
        }
    }
    Ok(names)
}

fn encoded(name: &OsStr) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let part = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    let bytes = name.as_encoded_bytes().iter();
    bytes.map(|byte| part(*byte)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        let names = ["20261116T014205.123Z-1", "javascript:x", "a b?#ü"];
        assert_eq!(
            names.map(|name| encoded(OsStr::new(name))),
            [
                "20261116T014205.123Z-1",
                "javascript%3Ax",
                "a%20b%3F%23%C3%BC"
            ]
        );
    }
}
