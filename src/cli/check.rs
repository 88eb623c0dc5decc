use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::output;
use super::progress::look;
use super::recorded::{JudgedAgain, judge_again};
use crate::model::Outcome;
use crate::report::{json, terminal};
use crate::run::RESULT;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

#[derive(Args)]
pub struct Check {
    /// The folder of a run, such as results/pause-gt-ttl/latest
    run: PathBuf,
    /// Show all that there is to say, however long
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub printed: Printed,
}

/// How a judgement compares with what the run itself had come to.
enum Beside<'a> {
    Same,
    /// From this verdict.
    Differs(Outcome),
    /// The run was killed, and these were not judged.
    Unfinished(&'a [String]),
    NoResult,
}

impl Check {
    pub fn execute(self) -> Result<Exit, Failure> {
        let judged = judge_again(&self.run)?;
        let beside = Beside::of(&judged);
        match self.printed.is_json() {
            true => document(&json!({
                "folder": self.run,
                "recorded": beside.name(),
                "stable": json::stable(&judged.run),
            }))?,
            false => {
                output::print(terminal::screen(&judged.run, &look(self.all)))?;
                output::line(beside.words())?;
            }
        }
        Ok(judged.run.verdict().into())
    }
}

impl Beside<'_> {
    fn of(judged: &JudgedAgain) -> Beside<'_> {
        let Some(recorded) = &judged.recorded else {
            return Beside::NoResult;
        };
        let unfinished = &recorded.stable.unfinished;
        if !unfinished.is_empty() {
            return Beside::Unfinished(unfinished);
        }
        match recorded.whole["stable"] == json::stable(&judged.run) {
            true => Beside::Same,
            false => Beside::Differs(recorded.stable.verdict),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Beside::Same => "same",
            Beside::Differs(_) => "differs",
            Beside::Unfinished(_) => "unfinished",
            Beside::NoResult => "none",
        }
    }

    fn words(&self) -> String {
        match self {
            Beside::Same => format!("the same as recorded in {RESULT}"),
            Beside::Differs(verdict) => {
                format!("this differs from what {RESULT} says: {verdict}")
            }
            Beside::Unfinished(cases) => {
                format!("the run ended before it had judged {}", cases.join(", "))
            }
            Beside::NoResult => format!("the run ended before it wrote a {RESULT}"),
        }
    }
}
