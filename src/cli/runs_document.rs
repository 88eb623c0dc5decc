use super::exit::Failure;
use super::format::document;
use crate::model::{Outcome, RunRecord};
use crate::report::json;
use crate::report::tally::Tally;
use serde_json::{Map, Value, json};

/// What runs came to, as one JSON document.
#[derive(Default)]
pub struct RunsDocument {
    runs: Vec<Value>,
    tally: Option<Value>,
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
        self.tally = Some(json!(tally));
    }

    pub fn print(self, verdict: Outcome) -> Result<(), Failure> {
        self.with(json!({ "verdict": verdict }))
    }

    /// With the runs that were over before it came to that.
    pub fn print_failure(self, failure: &Failure) -> Result<(), Failure> {
        self.with(failure.document())
    }

    fn with(self, about: Value) -> Result<(), Failure> {
        let mut all = Map::from_iter([("runs".to_owned(), json!(self.runs))]);
        all.extend(self.tally.map(|tally| ("tally".to_owned(), tally)));
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
