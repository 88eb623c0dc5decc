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
enum Beside {
    Same,
    /// From this verdict.
    Differs(Outcome),
    /// The run was killed; why there is nothing to compare with.
    EndedEarly {
        name: &'static str,
        words: String,
    },
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
                if let Some(lost) = judged.lost_evidence() {
                    output::line(lost)?;
                }
                output::line(beside.words())?;
            }
        }
        Ok(judged.run.verdict().into())
    }
}

impl Beside {
    fn of(judged: &JudgedAgain) -> Beside {
        let recorded = judged.recorded.as_ref();
        if let Some(words) = judged.ended_early() {
            let name = match recorded {
                Some(_) => "unfinished",
                None => "none",
            };
            return Beside::EndedEarly { name, words };
        }
        let stable = json::stable(&judged.run);
        match recorded.filter(|recorded| recorded.whole["stable"] != stable) {
            Some(recorded) => Beside::Differs(recorded.stable.verdict),
            None => Beside::Same,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Beside::Same => "same",
            Beside::Differs(_) => "differs",
            Beside::EndedEarly { name, .. } => name,
        }
    }

    fn words(&self) -> String {
        match self {
            Beside::Same => format!("the same as recorded in {RESULT}"),
            Beside::Differs(verdict) => {
                format!("this differs from what {RESULT} says: {verdict}")
            }
            Beside::EndedEarly { words, .. } => words.clone(),
        }
    }
}
