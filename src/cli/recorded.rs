//! Recorded runs as commands take them: a `result.json` read, or refused in one
//! way; and a whole run judged again from its evidence.

use super::exit::Failure;
use crate::files::{self, Links};
use crate::model::{Name, RunRecord};
use crate::report::recorded::{self, Recorded};
use crate::run::{RESULT, SCENARIO, judge_run, not_judged};
use crate::scenario::{Scenario, Setting, Settings, Surroundings, load_file};
use std::io::ErrorKind;
use std::path::Path;

/// A run that was judged again.
pub struct JudgedAgain {
    pub scenario: Scenario,
    pub run: RunRecord,
    /// What it had been judged to be; `None` where it ended before it wrote that.
    pub recorded: Option<Recorded>,
}

impl JudgedAgain {
    /// Why there is no whole result, where there is none.
    pub fn ended_early(&self) -> Option<String> {
        let Some(recorded) = &self.recorded else {
            return Some(format!("the run ended before it wrote a {RESULT}"));
        };
        not_judged(&recorded.stable.unfinished)
    }

    /// What was judged when the run ended, and has no folder to be judged by any more.
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

/// A file as a result; the error names it and says what it is instead. A link is not
/// followed: somebody else may have planted it.
pub fn read_result(path: &Path) -> Result<Recorded, String> {
    read_result_bytes(path).map(|(result, _)| result)
}

/// The same, with what it was read from.
pub fn read_result_bytes(path: &Path) -> Result<(Recorded, Vec<u8>), String> {
    let bytes = files::read(path, Links::Refuse, files::DOCUMENT);
    let bytes = bytes.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let result = recorded::read(&bytes).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok((result, bytes))
}

/// The folder of a run, also of one that was killed, judged by its evidence.
pub fn judge_again(folder: &Path) -> Result<JudgedAgain, Failure> {
    let scenario_file = folder.join(SCENARIO);
    if scenario_file.symlink_metadata().is_err() {
        return Err(Failure::usage(format!(
            "{} is not the folder of a run: it has no {SCENARIO}",
            folder.display()
        )));
    }
    let recorded = result_of(folder)?;
    let settings = settings(recorded.as_ref(), folder)?;
    let scenario = load_file(&scenario_file, &settings, &Surroundings::Recorded)?;
    let run = judge_run(&scenario, recorded.as_ref(), folder).map_err(Failure::usage)?;
    Ok(JudgedAgain {
        scenario,
        run,
        recorded,
    })
}

/// A killed run may have none; one that is there has to be whole.
fn result_of(folder: &Path) -> Result<Option<Recorded>, Failure> {
    let path = folder.join(RESULT);
    match path.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => read_result(&path).map(Some).map_err(Failure::usage),
    }
}

/// What was laid over the scenario when it ran.
fn settings(recorded: Option<&Recorded>, folder: &Path) -> Result<Settings, Failure> {
    let given = recorded.into_iter();
    let given = given.flat_map(|recorded| &recorded.stable.settings);
    let settings = given.map(|setting| setting.parse::<Setting>());
    let settings = settings.collect::<Result<Vec<_>, _>>();
    let path = folder.join(RESULT);
    let refused = |why| Failure::usage(format!("{}: {why}", path.display()));
    settings.map(Settings).map_err(refused)
}
