use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::output;
use super::runtime::{Chosen, docker_there, local, with_docker};
use super::state::State;
use crate::cluster::docker::{Engine, images};
use crate::cluster::{ClusterError, Leftovers};
use crate::fault::journal::{Healed, heal_leftovers};
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
        let state = State::open()?;
        // What is local needs no Docker to be removed.
        cleaned.add(local(&state)?).await?;
        // What was done is told in any case, also where the rest cannot be done.
        let trouble = self.in_docker(&state, &mut cleaned).await.err();
        let trouble = trouble.or_else(|| cleaned.left_behind());
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

    async fn in_docker(&self, state: &State, cleaned: &mut Cleaned) -> Result<(), Failure> {
        match docker_there(state).await {
            Err(error @ ClusterError::Unreachable { .. }) if !self.expects_docker(state) => {
                cleaned.docker = Some(error.to_string());
                return Ok(());
            }
            runtime => cleaned.add(with_docker(runtime?, state)).await?,
        }
        if self.images {
            let engine = Engine::connect().await?;
            cleaned.removed(images::remove_all(&engine).await?)?;
        }
        Ok(())
    }

    /// Where no run ever used Docker, there is nothing of ours in it.
    fn expects_docker(&self, state: &State) -> bool {
        self.images || state.journals().is_dir()
    }
}

/// What was done, told as it is done or at the end.
#[derive(Default, Serialize)]
struct Cleaned {
    #[serde(skip)]
    silent: bool,
    healed: Vec<String>,
    removed: Vec<String>,
    /// What is left, and why.
    stuck: Vec<String>,
    /// Why Docker was not looked at, where it need not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    docker: Option<String>,
}

impl Cleaned {
    async fn add(&mut self, chosen: Chosen) -> Result<(), Failure> {
        self.heal(&chosen).await?;
        let swept = chosen.runtime.sweep(Leftovers::OfDeadRunsAndKept).await?;
        self.stuck(swept.stuck);
        self.removed(swept.removed)?;
        // What could not be healed may have been removed, and then it owes nothing.
        let unhealed = self.heal(&chosen).await?;
        self.stuck(unhealed);
        Ok(())
    }

    /// Returns why some could not be healed.
    async fn heal(&mut self, chosen: &Chosen) -> Result<Vec<String>, Failure> {
        let Chosen { runtime, journals } = chosen;
        let Healed { healed, unhealed } = heal_leftovers(journals, runtime.as_ref()).await;
        for words in healed.iter().filter(|_| !self.silent) {
            output::line(words)?;
        }
        self.healed.extend(healed);
        Ok(unhealed)
    }

    fn stuck(&mut self, reasons: Vec<String>) {
        for why in &reasons {
            output::complain(why);
        }
        self.stuck.extend(reasons);
    }

    fn left_behind(&self) -> Option<Failure> {
        let message = "cannot remove everything: something is left, for the reasons above";
        (!self.stuck.is_empty()).then(|| Failure::harness(message))
    }

    fn removed(&mut self, names: Vec<String>) -> Result<(), Failure> {
        for name in names.iter().filter(|_| !self.silent) {
            output::line(format_args!("removed {name}"))?;
        }
        self.removed.extend(names);
        Ok(())
    }
}
