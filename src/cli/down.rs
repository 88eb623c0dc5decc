use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::state::State;
use super::{output, playground};
use crate::cluster::ClusterError;
use crate::cluster::docker::{Engine, sweep};
use crate::model::Name;
use clap::Args;
use serde_json::json;

/// Remove what `fencepost up` started, with all that it stored
#[derive(Args)]
pub struct Down {
    /// Names of topologies [default: all that are up]
    #[arg(value_name = "TOPOLOGY")]
    topologies: Vec<String>,
    #[command(flatten)]
    pub printed: Printed,
}

impl Down {
    pub async fn execute(self) -> Result<Exit, Failure> {
        let _turn = playground::turn(&State::open()?)?;
        let engine = Engine::connect().await?;
        let standing = sweep::runs(&engine).await?;
        let standing = standing.iter().filter_map(playground::topology_of);
        let asked = |name: &Name| {
            self.topologies.is_empty() || self.topologies.iter().any(|asked| asked == name)
        };
        let standing: Vec<Name> = standing.filter(asked).collect();
        for topology in &standing {
            let removed = sweep::remove_run(&engine, &playground::run_of(topology)).await;
            removed.map_err(|error| explained(error, topology))?;
        }
        if self.printed.is_json() {
            document(&json!({ "removed": standing }))?;
            return Ok(Exit::AsExpected);
        }
        for topology in &standing {
            output::line(format_args!("{topology} is down"))?;
        }
        let asked = self.topologies.iter();
        for topology in asked.filter(|name| !standing.iter().any(|known| known == *name)) {
            output::line(format_args!("{topology} was not up"))?;
        }
        if standing.is_empty() && self.topologies.is_empty() {
            output::line("nothing was up")?;
        }
        Ok(Exit::AsExpected)
    }
}

/// Others may have joined its network, as compose/monitoring does.
fn explained(error: ClusterError, topology: &Name) -> Failure {
    match error {
        ClusterError::StuckNetwork { .. } => Failure::harness(format!(
            "the services of {topology} are gone, but other containers are still on the network fencepost-{}; end them, then run: fencepost down {topology}",
            playground::run_of(topology)
        )),
        error => error.into(),
    }
}
