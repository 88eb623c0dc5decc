use super::exit::{Exit, Failure};
use super::output;
use super::runtime::{Chosen, docker, local};
use crate::cluster::docker::Engine;
use crate::cluster::docker::sweep::remove_images;
use crate::cluster::{Leftovers, Swept};
use crate::fault::journal::heal_leftovers;
use clap::Args;

#[derive(Args)]
pub struct Clean {
    /// Remove the images as well
    #[arg(long)]
    images: bool,
}

impl Clean {
    pub async fn execute(self) -> Result<Exit, Failure> {
        // What is local needs no Docker to be removed.
        let mut removed = clean(local()?).await?;
        removed += clean(docker().await?).await?;
        if self.images {
            let engine = Engine::connect().await?;
            removed += say_removed(&remove_images(&engine).await?)?;
        }
        if removed == 0 {
            output::line("nothing to remove")?;
        }
        Ok(Exit::AsExpected)
    }
}

/// Returns how much was removed.
async fn clean(chosen: Chosen) -> Result<usize, Failure> {
    let Chosen { runtime, journals } = chosen;
    for healed in heal_leftovers(&journals, runtime.as_ref()).await {
        output::line(&healed)?;
    }
    let Swept { removed, stuck } = runtime.sweep(Leftovers::OfDeadRunsAndKept).await?;
    // Only the system itself can let go of these.
    for why in &stuck {
        output::complain(why);
    }
    say_removed(&removed)
}

fn say_removed(removed: &[String]) -> Result<usize, Failure> {
    for name in removed {
        output::line(format_args!("removed {name}"))?;
    }
    Ok(removed.len())
}
