use super::*;
use crate::report::document::StablePart;
use serde_json::{Map, Value, json};

#[derive(Default)]
pub struct RunsDocument {
    runs: Vec<Value>,
    beside: Map<String, Value>,
}

impl RunsDocument {
    /// Adds a run. A run that never began has no folder.
    pub fn add(&mut self, run: &RunRecord) {
        self.runs.push(json!({
            "folder": run.began().then_some(&run.folder),
            "stable": StablePart::of(run),
        }));
    }

    /// Adds a fact about all runs.
    pub fn note(&mut self, name: &str, value: Value) {
        self.beside.insert(name.to_owned(), value);
    }

    /// Prints the runs with the verdict, or with the failure and the runs that ended before it.
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
        if let Value::Object(about) = about {
            all.extend(about);
        }
        document(&all)
    }
}
