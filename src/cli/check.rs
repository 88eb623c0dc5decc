use super::exit::{Exit, Failure};
use super::output;
use super::progress::wants_color;
use super::recorded::{JudgedAgain, judge_again};
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
        let judged = judge_again(&self.run)?;
        output::print(terminal::screen(&judged.run, wants_color()))?;
        output::line(beside_the_record(&judged))?;
        Ok(judged.run.verdict().into())
    }
}

/// How this compares with what the run itself had come to.
fn beside_the_record(judged: &JudgedAgain) -> String {
    let recorded = match (judged.ended_early(), &judged.recorded) {
        (None, Some(recorded)) => recorded,
        (early, _) => return early.unwrap_or_default(),
    };
    match recorded.whole["stable"] == json::stable(&judged.run) {
        true => format!("the same as recorded in {RESULT}"),
        false => {
            let verdict = recorded.stable.verdict;
            format!("this differs from what {RESULT} says: {verdict}")
        }
    }
}
