use super::exit::{Exit, Failure};
use super::format::{Printed, document};
use super::home::Home;
use super::output;
use crate::scenario::{Setting, Settings, plan};
use clap::Args;

#[derive(Args)]
pub struct Plan {
    /// Name of a scenario, or path of a scenario file
    scenario: String,
    /// Say something differently this once, such as lock.ttl=5s
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<Setting>,
    #[command(flatten)]
    pub printed: Printed,
}

impl Plan {
    pub fn execute(self, home: &Home) -> Result<Exit, Failure> {
        let settings = Settings(self.set);
        let around = home.surroundings()?;
        let scenario = home.library().load(&self.scenario, &settings, &around)?;
        let topologies = home.topologies()?;
        let services = |topology: &str| {
            let started = topologies.get(topology).into_iter();
            let started = started.flat_map(|topology| topology.started());
            started.map(|(name, _)| name.to_string()).collect()
        };
        let plan = plan(&scenario, services);
        match self.printed.is_json() {
            true => document(&plan)?,
            false => output::print(plan)?,
        }
        Ok(Exit::AsExpected)
    }
}
