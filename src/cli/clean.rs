use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::{output, state};
use crate::cluster::Swept;
use crate::cluster::docker::sweep::{self, Leftovers};
use crate::cluster::docker::{DockerRuntime, Engine};
use crate::fault::journal::heal_leftovers;
use clap::Args;
use serde_json::json;

#[derive(Args)]
pub struct Clean {
    /// Remove the images as well
    #[arg(long)]
    images: bool,
    #[command(flatten)]
    pub printed: Printed,
}

impl Clean {
    pub async fn execute(self) -> Result<Exit, Failure> {
        let runtime = DockerRuntime::connect().await?;
        let healed = heal_leftovers(&state::journals(), &runtime).await;
        let engine = Engine::connect().await?;
        let Swept { mut removed, stuck } =
            sweep::sweep(&engine, Leftovers::OfDeadRunsAndKept).await?;
        if self.images {
            removed.extend(sweep::remove_images(&engine).await?);
        }
        if self.printed.is_json() {
            document(&json!({ "healed": healed, "removed": removed, "stuck": stuck }))?;
            return Ok(Exit::AsExpected);
        }
        for healed in &healed {
            output::line(healed)?;
        }
        for name in &removed {
            output::line(format_args!("removed {name}"))?;
        }
        // Only the engine itself can let go of these.
        for why in &stuck {
            output::complain(why);
        }
        if removed.is_empty() {
            output::line("nothing to remove")?;
        }
        Ok(Exit::AsExpected)
    }
}
