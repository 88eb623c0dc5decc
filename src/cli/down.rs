use super::*;
use crate::cluster::ClusterError;
use crate::cluster::docker::{Engine, sweep};

/// Remove what `fencepost up` started, with all that it stored
#[derive(Args)]
pub struct Down {
    /// Names of topologies [default: all that are up]
    #[arg(value_name = "TOPOLOGY")]
    topologies: Vec<String>,
    #[command(flatten)]
    pub printed: OutputFormat,
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
        let removed = standing.iter().map(|name| format!("{name} is down\n"));
        let was_down = |name: &&String| !standing.iter().any(|known| known == *name);
        let others = self.topologies.iter().filter(was_down);
        let others = others.map(|name| format!("{name} was not up\n"));
        let mut text: String = removed.chain(others).collect();
        if text.is_empty() {
            text.push_str("nothing was up\n");
        }
        self.printed.show(&json!({ "removed": standing }), text)
    }
}

/// Explains that other containers may have joined the network, as compose/monitoring does.
fn explained(error: ClusterError, topology: &Name) -> Failure {
    match error {
        ClusterError::StuckNetwork { .. } => Failure::harness(format!(
            "the services of {topology} are gone, but other containers are still on the network fencepost-{}; end them, then run: fencepost down {topology}",
            playground::run_of(topology)
        )),
        error => error.into(),
    }
}
