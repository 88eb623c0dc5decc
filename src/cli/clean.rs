use super::exit::{Exit, Failure};
use super::output;
use crate::cluster::docker::Engine;
use crate::cluster::docker::sweep::{self, Leftovers};
use clap::Args;

#[derive(Args)]
pub struct Clean {
    /// Remove the images as well
    #[arg(long)]
    images: bool,
}

impl Clean {
    pub async fn execute(self) -> Result<Exit, Failure> {
        let engine = Engine::connect().await?;
        let mut removed = sweep::sweep(&engine, Leftovers::OfDeadRunsAndKept).await?;
        if self.images {
            removed.extend(sweep::remove_images(&engine).await?);
        }
        for name in &removed {
            output::line(format_args!("removed {name}"))?;
        }
        if removed.is_empty() {
            output::line("nothing to remove")?;
        }
        Ok(Exit::AsExpected)
    }
}
