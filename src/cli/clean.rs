use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::output;
use super::runtime::{Chosen, local, with_docker};
use super::state;
use crate::cluster::docker::sweep::remove_images;
use crate::cluster::docker::{DockerRuntime, Engine};
use crate::cluster::{ClusterError, Leftovers, Swept};
use crate::fault::journal::heal_leftovers;
use clap::Args;
use serde::Serialize;
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
        let mut cleaned = Cleaned {
            silent: self.printed.is_json(),
            ..Cleaned::default()
        };
        // What is local needs no Docker to be removed.
        cleaned.add(local()?).await?;
        // What was done is told in any case, also where the rest cannot be done.
        let trouble = self.in_docker(&mut cleaned).await.err();
        if cleaned.silent {
            let mut told = json!(cleaned);
            if let (Some(told), Some(failure)) = (told.as_object_mut(), &trouble) {
                let failure = failure.document();
                told.extend(failure.as_object().cloned().unwrap_or_default());
            }
            document(&told)?;
            return Ok(trouble.map_or(Exit::AsExpected, |failure| failure.exit));
        }
        if cleaned.removed.is_empty() && trouble.is_none() {
            output::line("nothing to remove")?;
        }
        if let Some(reason) = &cleaned.docker {
            output::complain(format_args!("Docker was not looked at: {reason}"));
        }
        trouble.map_or(Ok(Exit::AsExpected), Err)
    }

    async fn in_docker(&self, cleaned: &mut Cleaned) -> Result<(), Failure> {
        match DockerRuntime::connect().await {
            Err(error @ ClusterError::Unreachable { .. }) if !self.expects_docker() => {
                cleaned.docker = Some(error.to_string());
                return Ok(());
            }
            runtime => cleaned.add(with_docker(runtime?)).await?,
        }
        if self.images {
            let engine = Engine::connect().await?;
            cleaned.removed(remove_images(&engine).await?)?;
        }
        Ok(())
    }

    /// Where no run ever used Docker, there is nothing of ours in it.
    fn expects_docker(&self) -> bool {
        self.images || state::journals().is_dir()
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
    /// Why Docker was not looked at, where it need not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    docker: Option<String>,
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
