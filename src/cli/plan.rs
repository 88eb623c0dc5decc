use super::*;
use crate::scenario::{Setting, Settings, Setup, plan};

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
        let services = |setup: &Setup| {
            let Some(topology) = topologies.get(&setup.topology) else {
                return Vec::new();
            };
            let attached = setup.attach.as_ref();
            let attached = attached.map(|it| topology.attached_to(it, setup.lock.backend));
            let started = attached.as_ref().unwrap_or(topology).started();
            started.map(|(name, _)| name.to_string()).collect()
        };
        let plan = plan(&scenario, services);
        self.printed.show(&plan, &plan)
    }
}
