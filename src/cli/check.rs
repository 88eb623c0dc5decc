use super::exit::{Exit, Failure};
use super::output;
use super::progress::wants_color;
use crate::report::{json, terminal};
use crate::run::{RESULT, Recorded, SCENARIO, judge_run};
use crate::scenario::{Setting, Settings, Surroundings, load_file};
use clap::Args;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct Check {
    /// The folder of a run, such as results/pause-gt-ttl/latest
    run: PathBuf,
}

impl Check {
    pub fn execute(self) -> Result<Exit, Failure> {
        let scenario_file = self.run.join(SCENARIO);
        if !scenario_file.is_file() {
            let run = self.run.display();
            return Err(Failure::usage(format!(
                "{run} is not the folder of a run: it has no {SCENARIO}"
            )));
        }
        let recorded = read_result(&self.run)?;
        let stable = recorded.as_ref().map(|result| &result["stable"]);
        let settings = settings(stable)?;
        let scenario = load_file(&scenario_file, &settings, &Surroundings::Recorded)?;
        let facts = facts(stable);
        let outcome = judge_run(&scenario, &facts, &self.run);
        let outcome = outcome.map_err(Failure::usage)?;
        output::print(terminal::screen(&outcome, wants_color()))?;
        output::line(match stable {
            None => "the run ended before it wrote a result".to_owned(),
            Some(_) if !facts.unfinished.is_empty() => {
                format!(
                    "the run ended before it had judged {}",
                    facts.unfinished.join(", ")
                )
            }
            Some(stable) if *stable != json::stable(&outcome) => {
                format!(
                    "this differs from what {RESULT} says: {}",
                    stable["verdict"]
                )
            }
            Some(_) => format!("the same as recorded in {RESULT}"),
        })?;
        Ok(outcome.verdict().into())
    }
}

/// What cannot be read off the evidence.
fn facts(stable: Option<&Value>) -> Recorded {
    let Some(stable) = stable else {
        return Recorded::default();
    };
    let unfinished = stable["unfinished"].as_array().into_iter().flatten();
    Recorded {
        seed: stable["seed"].as_u64().unwrap_or_default(),
        mutant: stable["mutant"].as_str().map(str::to_owned),
        unfinished: unfinished
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect(),
    }
}

/// What was laid over the scenario when it ran.
fn settings(stable: Option<&Value>) -> Result<Settings, Failure> {
    let given = stable.and_then(|stable| stable["settings"].as_array());
    let given = given.into_iter().flatten().filter_map(Value::as_str);
    let settings = given.map(str::parse::<Setting>);
    let settings = settings.collect::<Result<Vec<_>, _>>();
    settings.map(Settings).map_err(Failure::usage)
}

fn read_result(run: &Path) -> Result<Option<Value>, Failure> {
    let path = run.join(RESULT);
    let Ok(bytes) = std::fs::read(&path) else {
        return Ok(None);
    };
    let result: Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::usage(format!("{} is not a result: {error}", path.display())))?;
    match result["schema_version"].as_u64() {
        Some(version) if version == u64::from(json::SCHEMA_VERSION) => Ok(Some(result)),
        Some(version) => Err(Failure::usage(format!(
            "{} has schema version {version}; this program reads {}",
            path.display(),
            json::SCHEMA_VERSION
        ))),
        None => Err(Failure::usage(format!(
            "{} is not a result of fencepost: it has no schema_version",
            path.display()
        ))),
    }
}
