use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::output;
use super::runtime::{Chosen, docker, local};
use crate::cluster::docker::Engine;
use crate::cluster::docker::sweep::remove_images;
use crate::cluster::{Leftovers, Swept};
use crate::fault::journal::heal_leftovers;
use clap::Args;
use serde::Serialize;

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
        let mut cleaned = Cleaned {
            silent: self.printed.is_json(),
            ..Cleaned::default()
        };
        // What is local needs no Docker to be removed.
        cleaned.add(local()?).await?;
        cleaned.add(docker().await?).await?;
        if self.images {
            let engine = Engine::connect().await?;
            cleaned.removed(remove_images(&engine).await?)?;
        }
        if cleaned.silent {
            document(&cleaned)?;
        } else if cleaned.removed.is_empty() {
            output::line("nothing to remove")?;
        }
        Ok(Exit::AsExpected)
    }
}

/// What was done, told as it is done or at the end.
#[derive(Default, Serialize)]
struct Cleaned {
    #[serde(skip)]
    silent: bool,
    healed: Vec<String>,
    removed: Vec<String>,
    stuck: Vec<String>,
}

impl Cleaned {
    async fn add(&mut self, chosen: Chosen) -> Result<(), Failure> {
        let Chosen { runtime, journals } = chosen;
        let healed = heal_leftovers(&journals, runtime.as_ref()).await;
        for words in healed.iter().filter(|_| !self.silent) {
            output::line(words)?;
        }
        self.healed.extend(healed);
        let Swept { removed, stuck } = runtime.sweep(Leftovers::OfDeadRunsAndKept).await?;
        // Only the system itself can let go of these.
        for why in &stuck {
            output::complain(why);
        }
        self.stuck.extend(stuck);
        self.removed(removed)
    }

    fn removed(&mut self, names: Vec<String>) -> Result<(), Failure> {
        for name in names.iter().filter(|_| !self.silent) {
            output::line(format_args!("removed {name}"))?;
        }
        self.removed.extend(names);
        Ok(())
    }
}
