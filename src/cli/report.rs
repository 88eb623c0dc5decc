use super::recorded::{judge_again, run_folder};
use super::*;
use crate::run::write_page;

/// Make the page of a run, or the overview of all
///
/// A run makes its page itself when it ends, or is given up. This makes it again from the recorded files alone, for a
/// run of any age, also for one that was killed half-way.
#[derive(Args)]
pub struct Report {
    /// The folder of a run, or a scenario for its latest run
    #[arg(required_unless_present = "index")]
    run: Option<PathBuf>,
    /// Make DIR/index.html instead: every scenario, its verdicts so far, a link to each run
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    index: Option<PathBuf>,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Report {
    pub fn execute(self, home: impl Fn() -> Result<Home, Failure>) -> Result<Exit, Failure> {
        let made = match &self.index {
            Some(results) => overview::write(results)?,
            None => {
                let results = || home().map(|home| home.results());
                page(&run_folder(&self.run.unwrap_or_default(), results)?)?
            }
        };
        // The page was made, whatever its verdict: `check` is the command that exits by verdict.
        let text = format!("{}\n", made.display());
        self.printed.show(&json!({ "written": made }), text)
    }
}

fn page(run: &Path) -> Result<PathBuf, Failure> {
    let judged = judge_again(run)?;
    let early = judged.ended_early().or_else(|| judged.lost_evidence());
    let page = write_page(&judged.run, &judged.scenario, early);
    page.map_err(Failure::harness)
}
