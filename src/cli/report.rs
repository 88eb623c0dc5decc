use super::exit::{Exit, Failure};
use super::output;
use super::recorded::RecordedRun;
use crate::run::write_page;
use clap::Args;
use std::path::{Path, PathBuf};

/// Make the page of a run, or the overview of all
///
/// A run makes its page itself when it ends. This makes it again from the recorded files alone, for a
/// run of any age, also for one that was killed half-way.
#[derive(Args)]
pub struct Report {
    /// The folder of a run, such as results/pause-gt-ttl/latest
    #[arg(required_unless_present = "index")]
    run: Option<PathBuf>,
    /// Make DIR/index.html instead: every scenario, its verdicts so far, a link to each run
    #[arg(long, value_name = "DIR", conflicts_with = "run")]
    index: Option<PathBuf>,
}

impl Report {
    pub fn execute(self) -> Result<Exit, Failure> {
        if let Some(run) = &self.run {
            return page(run);
        }
        let made = self.index;
        Err(Failure::harness(format!("{made:?}: not built yet")))
    }
}

/// Made is made, whatever the verdict on it says: `check` is there to exit by that.
fn page(run: &Path) -> Result<Exit, Failure> {
    let recorded = RecordedRun::read(run)?;
    let early = recorded.ended_early();
    let page = write_page(&recorded.outcome, &recorded.scenario, early);
    let page = page.map_err(Failure::harness)?;
    output::line(page.display())?;
    Ok(Exit::AsExpected)
}
