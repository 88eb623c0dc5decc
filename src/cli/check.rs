use super::recorded::{RejudgedRun, judge_again, run_folder};
use super::*;
use crate::report::differing::differing;
use crate::report::document::{ResultDocument, StablePart};
use crate::run::RESULT;

#[derive(Args)]
pub struct Check {
    /// The folder of a run, or a scenario for its latest run
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Look scenarios up in DIR [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Show everything, however long
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    pub printed: OutputFormat,
}

/// The number of differing fields that a remark names.
const PLACES_NAMED: usize = 3;

/// How a new judgement compares with the recorded one.
struct RecordedComparison {
    name: &'static str,
    /// The fields that differ.
    places: Vec<String>,
    words: String,
}

impl Check {
    pub fn execute(self, home: impl Fn() -> Result<Home, Failure>) -> Result<Exit, Failure> {
        let folder = run_folder(&self.run, || match &self.results {
            Some(folder) => Ok(folder.clone()),
            None => home().map(|home| home.results()),
        })?;
        let judged = judge_again(&folder)?;
        let beside = RecordedComparison::of(&judged, self.all);
        if self.printed.is_json() {
            document(&json!({
                "folder": folder,
                "recorded": beside.name,
                "differing": beside.places,
                "stable": StablePart::of(&judged.run),
            }))?
        } else {
            let look = look(self.all);
            let lost = judged.lost_evidence().unwrap_or_default();
            let below = [lost, beside.words];
            let below: String = below
                .iter()
                .map(|words| terminal::remark(words, &look))
                .collect();
            output::screen(terminal::screen_above(&below, &judged.run, &look))?;
        }
        Ok(judged.run.verdict().into())
    }
}

impl RecordedComparison {
    /// Names only the first of many fields, unless all are wanted.
    fn of(judged: &RejudgedRun, all: bool) -> RecordedComparison {
        let recorded = judged.recorded.as_ref();
        let (name, places, words) = match (judged.ended_early(), recorded) {
            (Some(words), Some(_)) => ("unfinished", Vec::new(), words),
            (Some(words), None) => ("none", Vec::new(), words),
            (None, _) => {
                let ours = json!(StablePart::of(&judged.run));
                let differing = |it: &ResultDocument| differing(&ours, &json!(it.stable));
                let places = recorded.map(differing).unwrap_or_default();
                match recorded.filter(|_| !places.is_empty()) {
                    None => ("same", places, format!("the same as recorded in {RESULT}")),
                    Some(recorded) => {
                        let words = differing_words(recorded.stable.verdict, &places, all);
                        ("differs", places, words)
                    }
                }
            }
        };
        RecordedComparison {
            name,
            places,
            words,
        }
    }
}

fn differing_words(verdict: Outcome, places: &[String], all: bool) -> String {
    let named = if all { places.len() } else { PLACES_NAMED };
    let more = match places.len().saturating_sub(named) {
        0 => String::new(),
        more => format!(" and {more} more, which --all names"),
    };
    let named = places[..places.len().min(named)].join(", ");
    format!("this differs from what {RESULT} says: {verdict} (not the same: {named}{more})")
}
