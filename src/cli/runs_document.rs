use super::exit::{Exit, Failure};
use super::format::document;
use super::output;
use crate::model::{Outcome, RunRecord};
use crate::report::json;
use crate::report::tally::Tally;
use serde_json::{Map, Value, json};

/// What runs came to, as one JSON document.
#[derive(Default)]
pub struct RunsDocument {
    runs: Vec<Value>,
    beside: Map<String, Value>,
}

impl RunsDocument {
    /// One that never began has no folder.
    pub fn add(&mut self, run: &RunRecord) {
        self.runs.push(json!({
            "folder": run.began().then_some(&run.folder),
            "stable": json::stable(run),
        }));
    }

    /// How often each outcome came.
    pub fn count(&mut self, tally: &Tally) {
        self.note("tally", json!(tally));
    }

    /// Something that was found out about all of them.
    pub fn note(&mut self, name: &str, value: Value) {
        self.beside.insert(name.to_owned(), value);
    }

    /// With the verdict; or with what went wrong, and the runs that were over before it came to that.
    pub fn print(self, ended: Result<Outcome, Failure>) -> Result<Exit, Failure> {
        match ended {
            Ok(verdict) => {
                self.with(json!({ "verdict": verdict }))?;
                Ok(verdict.into())
            }
            Err(failure) => {
                self.with(failure.document())?;
                output::complain(format_args!("error: {failure}"));
                Ok(failure.exit)
            }
        }
    }

    fn with(self, about: Value) -> Result<(), Failure> {
        let mut all = Map::from_iter([("runs".to_owned(), json!(self.runs))]);
        all.extend(self.beside);
        all.extend(
            about
                .as_object()
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        document(&all)
    }
}
