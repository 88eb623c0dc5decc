use super::runtime::{OpenRuntime, docker_there, local, with_docker};
use super::*;
use crate::cluster::docker::{Engine, images};
use crate::cluster::{ClusterError, Leftovers};
use crate::faults::journal::{Healed, heal_leftovers};

#[derive(Args)]
pub struct Clean {
    /// Remove the images as well
    #[arg(long)]
    images: bool,
    #[command(flatten)]
    pub printed: OutputFormat,
}

impl Clean {
    pub async fn execute(self) -> Result<Exit, Failure> {
        let mut cleaned = CleanReport {
            silent: self.printed.is_json(),
            ..CleanReport::default()
        };
        let state = State::open()?;
        // Local leftovers can be removed without Docker.
        cleaned.add(local(&state)?).await?;
        // Report what was done even if the rest fails.
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

    async fn in_docker(&self, state: &State, cleaned: &mut CleanReport) -> Result<(), Failure> {
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

    /// Returns whether Docker must be looked at. If no run ever used it, nothing of ours is in it.
    fn expects_docker(&self, state: &State) -> bool {
        self.images || state.journals().is_dir()
    }
}

/// The work that was done, reported while it is done or at the end.
#[derive(Default, Serialize)]
struct CleanReport {
    #[serde(skip)]
    silent: bool,
    healed: Vec<String>,
    removed: Vec<String>,
    /// The reasons why something is left.
    stuck: Vec<String>,
    /// The reason why Docker was not looked at, where that was not necessary.
    #[serde(skip_serializing_if = "Option::is_none")]
    docker: Option<String>,
}

impl CleanReport {
    async fn add(&mut self, chosen: OpenRuntime) -> Result<(), Failure> {
        self.heal(&chosen).await?;
        let swept = chosen.runtime.sweep(Leftovers::OfDeadRunsAndKept).await?;
        self.stuck(swept.stuck);
        self.removed(swept.removed)?;
        // A container that could not be healed may have been removed; then nothing has to be
        // healed any more.
        let unhealed = self.heal(&chosen).await?;
        self.stuck(unhealed);
        Ok(())
    }

    /// Returns why some faults could not be healed.
    async fn heal(&mut self, chosen: &OpenRuntime) -> Result<Vec<String>, Failure> {
        let OpenRuntime { runtime, journals } = chosen;
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
