//! A recorded run, read and judged again from its files alone.

use super::exit::Failure;
use crate::model::RunRecord;
use crate::report::json;
use crate::run::{RESULT, Recorded, SCENARIO, judge_run};
use crate::scenario::{Scenario, Setting, Settings, Surroundings, load_file};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

pub struct RecordedRun {
    pub scenario: Scenario,
    pub outcome: RunRecord,
    /// What the result says, where there is one.
    pub stable: Option<Value>,
    /// What the result says that nobody had judged yet.
    unjudged: Vec<String>,
}

impl RecordedRun {
    pub fn read(run: &Path) -> Result<RecordedRun, Failure> {
        let scenario_file = run.join(SCENARIO);
        if !scenario_file.is_file() {
            let run = run.display();
            return Err(Failure::usage(format!(
                "{run} is not the folder of a run: it has no {SCENARIO}"
            )));
        }
        let result = read_result(run)?;
        let settings = settings(result.as_ref().map(|result| &result["stable"]))?;
        let scenario = load_file(&scenario_file, &settings, &Surroundings::Recorded)?;
        let facts = result.as_ref().map(facts).unwrap_or_default();
        let outcome = judge_run(&scenario, &facts, run).map_err(Failure::usage)?;
        Ok(RecordedRun {
            scenario,
            outcome,
            stable: result.map(|mut result| result["stable"].take()),
            unjudged: facts.unfinished,
        })
    }

    /// Why there is no whole result, where there is none.
    pub fn ended_early(&self) -> Option<String> {
        match (&self.stable, self.unjudged.as_slice()) {
            (None, _) => Some("the run ended before it wrote a result".to_owned()),
            (Some(_), []) => None,
            (Some(_), unjudged) => Some(format!(
                "the run ended before it had judged {}",
                unjudged.join(", ")
            )),
        }
    }
}

/// What cannot be read off the evidence.
fn facts(result: &Value) -> Recorded {
    let stable = &result["stable"];
    let unfinished = stable["unfinished"].as_array().into_iter().flatten();
    let environment = result["environment"].as_object().into_iter().flatten();
    let named =
        environment.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    Recorded {
        seed: stable["seed"].as_u64().unwrap_or_default(),
        mutant: stable["mutant"].as_str().map(str::to_owned),
        unfinished: unfinished
            .filter_map(|name| Some(name.as_str()?.to_owned()))
            .collect(),
        environment: named.collect::<BTreeMap<_, _>>(),
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
