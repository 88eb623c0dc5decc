use super::exit::{Exit, Failure};
use super::home::Home;
use super::output;
use crate::scenario::plan;
use clap::Args;

#[derive(Args)]
pub struct Plan {
    /// Name of a scenario, or path of a scenario file
    scenario: String,
}

impl Plan {
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let (scenario, topology) = home.load(&self.scenario)?;
        let services: Vec<String> = topology.started().map(|(name, _)| name.clone()).collect();
        output::print(plan(&scenario, &services))?;
        Ok(Exit::AsExpected)
    }
}
