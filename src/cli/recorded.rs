//! Reads recorded runs for commands: a `result.json` is read or refused in one way, and a whole
//! run is judged again from its evidence.

use super::diff::LATEST;
use super::*;
use crate::report::document::{self, ResultDocument};
use crate::run::{RESULT, SCENARIO, judge_run, not_judged};
use crate::scenario::{Scenario, Setting, Settings, Surroundings, load_file};
use bounded_io::files::{self, Links};
use std::io::ErrorKind;

pub struct RejudgedRun {
    pub scenario: Scenario,
    pub run: RunRecord,
    /// The recorded judgement; `None` if the run ended before it wrote one.
    pub recorded: Option<ResultDocument>,
}

impl RejudgedRun {
    /// Returns why there is no complete result, if that is the case.
    pub fn ended_early(&self) -> Option<String> {
        let Some(recorded) = &self.recorded else {
            return Some(format!("the run ended before it wrote a {RESULT}"));
        };
        not_judged(&recorded.stable.unfinished)
    }

    /// Names the cases that the run had judged and whose folder is gone.
    pub fn lost_evidence(&self) -> Option<String> {
        let recorded = self.recorded.as_ref()?;
        let lost = self.run.unfinished.iter();
        let lost = lost.filter(|name| recorded.stable.cases.contains_key(*name));
        let lost: Vec<&str> = lost.map(Name::as_str).collect();
        let some = !lost.is_empty();
        some.then(|| {
            format!(
                "{RESULT} has a verdict on {}, of which there is no folder: the evidence was removed",
                lost.join(", ")
            )
        })
    }
}

/// Reads a file as a result; the error names the file and says what it is instead. A link is
/// not followed: somebody else may have planted it.
pub fn read_result(path: &Path) -> Result<ResultDocument, String> {
    read_result_bytes(path).map(|(result, _)| result)
}

/// Does the same, and also returns the bytes that were read.
pub fn read_result_bytes(path: &Path) -> Result<(ResultDocument, Vec<u8>), String> {
    let bytes = files::read(path, Links::Refuse, files::DOCUMENT);
    let bytes = bytes.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let result = document::read(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((result, bytes))
}

/// Returns the folder of a run. A path is that of a run, or of a scenario with runs; a name is a
/// scenario's. Of a scenario, the latest run is meant.
pub fn run_folder(
    named: &Path,
    results: impl FnOnce() -> Result<PathBuf, Failure>,
) -> Result<PathBuf, Failure> {
    let latest_in = |folder: &Path| Some(folder.join(LATEST)).filter(|latest| latest.is_dir());
    if named.join(SCENARIO).symlink_metadata().is_ok() {
        return Ok(named.to_owned());
    }
    if let Some(latest) = latest_in(named) {
        return Ok(latest);
    }
    let name = named.to_str().and_then(|text| Name::new(text).ok());
    let Some(name) = name else {
        // What it is instead is said where it is read.
        return Ok(named.to_owned());
    };
    let results = results()?;
    latest_in(&results.join(name.as_str())).ok_or_else(|| {
        Failure::usage(format!(
            "`{name}` is not the folder of a run, and no scenario with a run in {}",
            results.display()
        ))
    })
}

/// Judges the folder of a run by its evidence, even if the run was killed.
pub fn judge_again(folder: &Path) -> Result<RejudgedRun, Failure> {
    let scenario_file = folder.join(SCENARIO);
    if scenario_file.symlink_metadata().is_err() {
        return Err(Failure::usage(format!(
            "{} is not the folder of a run: it has no {SCENARIO}",
            folder.display()
        )));
    }
    let recorded = result_of(folder)?;
    let settings = settings(recorded.as_ref(), folder)?;
    let scenario = load_file(&(&scenario_file).into(), &settings, &Surroundings::Recorded)?;
    let run = judge_run(&scenario, recorded.as_ref(), folder).map_err(Failure::usage)?;
    Ok(RejudgedRun {
        scenario,
        run,
        recorded,
    })
}

/// Reads the result of a run. A killed run may have none, but an existing file has to be complete.
fn result_of(folder: &Path) -> Result<Option<ResultDocument>, Failure> {
    let path = folder.join(RESULT);
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => read_result(&path).map(Some).map_err(Failure::usage),
    }
}

/// Returns the overrides that the scenario ran with.
fn settings(recorded: Option<&ResultDocument>, folder: &Path) -> Result<Settings, Failure> {
    let given = recorded.into_iter();
    let given = given.flat_map(|recorded| &recorded.stable.settings);
    let settings = given.map(|setting| setting.parse::<Setting>());
    let settings = settings.collect::<Result<Vec<_>, _>>();
    let path = folder.join(RESULT);
    let refused = |why| Failure::usage(format!("{}: {why}", path.display()));
    settings.map(Settings).map_err(refused)
}
