use super::*;
use crate::scenario::{Setting, Settings, plan};

#[derive(Args)]
pub struct Plan {
    /// Name of a scenario, or path of a scenario file
    scenario: String,
    /// Override a field of the scenario and its cases, such as lock.ttl=5s
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<Setting>,
    #[command(flatten)]
    pub printed: OutputFormat,
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
        self.printed.show(&plan, &plan)
    }
}
