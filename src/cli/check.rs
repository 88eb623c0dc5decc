use super::exit::{Exit, Failure};
use super::output;
use super::progress::wants_color;
use super::recorded::RecordedRun;
use crate::report::{json, terminal};
use crate::run::RESULT;
use clap::Args;
use std::path::PathBuf;

#[derive(Args)]
pub struct Check {
    /// The folder of a run, such as results/pause-gt-ttl/latest
    run: PathBuf,
}

impl Check {
    pub fn execute(self) -> Result<Exit, Failure> {
        let recorded = RecordedRun::read(&self.run)?;
        let outcome = &recorded.outcome;
        output::print(terminal::screen(outcome, wants_color()))?;
        let early = recorded.ended_early();
        output::line(early.unwrap_or_else(|| match &recorded.stable {
            Some(stable) if *stable != json::stable(outcome) => {
                let verdict = &stable["verdict"];
                format!("this differs from what {RESULT} says: {verdict}")
            }
            _ => format!("the same as recorded in {RESULT}"),
        }))?;
        Ok(outcome.verdict().into())
    }
}
