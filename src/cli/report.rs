use super::exit::{Exit, Failure};
use super::{output, overview};
use clap::Args;
use std::path::PathBuf;

/// Make the page of a run, or the overview of all
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
        if let Some(results) = self.index {
            output::line(overview::write(&results)?.display())?;
            return Ok(Exit::AsExpected);
        }
        Err(Failure::harness(format!("{:?}: not built yet", self.run)))
    }
}
