use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::output;
use super::progress::look;
use super::recorded::{JudgedAgain, judge_again};
use crate::model::Outcome;
use crate::report::differing::differing;
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

/// Fields that differ, in one remark.
const PLACES_NAMED: usize = 3;

/// How a judgement compares with what the run itself had come to.
enum Beside {
    Same,
    Differs {
        /// What the run itself had come to.
        verdict: Outcome,
        /// The fields that are not the same.
        places: Vec<String>,
    },
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
                "differing": beside.places(),
                "stable": json::stable(&judged.run),
            }))?,
            false => {
                let look = look(self.all);
                let lost = judged.lost_evidence().unwrap_or_default();
                let below = [lost, beside.words(self.all)];
                let below: String = below
                    .iter()
                    .map(|words| terminal::remark(words, &look))
                    .collect();
                output::screen(terminal::screen_above(&below, &judged.run, &look))?;
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
        let Some(recorded) = recorded else {
            return Beside::Same;
        };
        let places = differing(&stable, &recorded.whole["stable"]);
        match places.is_empty() {
            true => Beside::Same,
            false => Beside::Differs {
                verdict: recorded.stable.verdict,
                places,
            },
        }
    }

    fn places(&self) -> &[String] {
        match self {
            Beside::Differs { places, .. } => places,
            _ => &[],
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Beside::Same => "same",
            Beside::Differs { .. } => "differs",
            Beside::EndedEarly { name, .. } => name,
        }
    }

    /// Of many fields only the first, unless all are wanted.
    fn words(&self, all: bool) -> String {
        match self {
            Beside::Same => format!("the same as recorded in {RESULT}"),
            Beside::Differs { verdict, places } => {
                let named = if all { places.len() } else { PLACES_NAMED };
                let more = match places.len().saturating_sub(named) {
                    0 => String::new(),
                    more => format!(" and {more} more, which --all names"),
                };
                let named: Vec<&str> = places.iter().take(named).map(String::as_str).collect();
                let named = named.join(", ");
                format!(
                    "this differs from what {RESULT} says: {verdict} (not the same: {named}{more})"
                )
            }
            Beside::EndedEarly { words, .. } => words.clone(),
        }
    }
}
