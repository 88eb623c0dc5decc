use super::exit::{Exit, Failure};
use super::home::Home;
use super::{interrupt, output, progress};
use crate::cluster::docker::DockerRuntime;
use crate::cluster::{Runtime, Topology};
use crate::model::{Outcome, RunRecord};
use crate::progress::Progress;
use crate::report::terminal;
use crate::run::{self, RunError, RunRequest};
use crate::scenario::Scenario;
use crate::yaml::suggestion;
use clap::Args;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

#[derive(Args)]
pub struct Run {
    /// Names of scenarios, or paths of scenario files
    #[arg(required_unless_present = "all", value_name = "SCENARIO")]
    scenarios: Vec<String>,
    /// Run every scenario there is
    #[arg(long, conflicts_with = "scenarios")]
    all: bool,
    /// Run only this case
    #[arg(long, value_name = "NAME")]
    case: Option<String>,
    /// Seeds every random choice of a run
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run so many times and say how often each outcome came
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    repeat: u32,
    /// Leave the containers for looking at; `fencepost clean` removes them
    #[arg(long)]
    keep: bool,
    /// Where results go [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Switch a defect on, to see that it is caught
    #[cfg(debug_assertions)]
    #[arg(long, hide = true, value_parser = mutant)]
    mutant: Option<String>,
}

impl Run {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let scenarios = self.load(&home)?;
        let interrupt = interrupt::listen()?;
        let progress = progress::for_this_output();
        let runtime = DockerRuntime::connect().await?;
        let mut tally = Tally::default();
        let ended = self
            .run_all(
                &home,
                &scenarios,
                &runtime,
                progress.as_ref(),
                &interrupt,
                &mut tally,
            )
            .await;
        if self.repeat > 1 {
            output::print(tally.table())?;
        }
        ended?;
        Ok(tally.worst().into())
    }

    async fn run_all(
        &self,
        home: &Home,
        scenarios: &[(Scenario, Topology)],
        runtime: &dyn Runtime,
        progress: &dyn Progress,
        interrupt: &CancellationToken,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        for _ in 0..self.repeat {
            for (scenario, topology) in scenarios {
                let request = self.request(home, scenario, topology);
                let outcome = run::run(&request, runtime, progress, interrupt).await?;
                // Of many good runs a line in the tally is enough.
                if self.repeat == 1 || outcome.verdict() != Outcome::AsExpected {
                    output::print(terminal::screen(&outcome, progress::wants_color()))?;
                }
                tally.add(&outcome);
                // Too late to stop this run, and in time for what would follow it.
                if interrupt.is_cancelled() {
                    return Err(RunError::Interrupted.into());
                }
            }
        }
        Ok(())
    }

    fn load(&self, home: &Home) -> Result<Vec<(Scenario, Topology)>, Failure> {
        let names = match self.all {
            true => home.library().names()?,
            false => self.scenarios.clone(),
        };
        let scenarios: Vec<(Scenario, Topology)> = names
            .iter()
            .map(|name| home.load(name))
            .collect::<Result<_, _>>()?;
        if let Some(case) = &self.case {
            for (scenario, _) in &scenarios {
                let known: Vec<&str> = scenario.cases.iter().map(|c| c.name.as_str()).collect();
                if !known.contains(&case.as_str()) {
                    let hint = suggestion(case, &known);
                    let name = &scenario.name;
                    let message = format!("{name} has no case `{case}`; {hint}");
                    return Err(Failure::usage(message));
                }
            }
        }
        Ok(scenarios)
    }

    fn request<'a>(
        &'a self,
        home: &Home,
        scenario: &'a Scenario,
        topology: &'a Topology,
    ) -> RunRequest<'a> {
        RunRequest {
            scenario,
            topology,
            case: self.case.as_deref(),
            seed: self.seed,
            keep: self.keep,
            results: self.results.clone().unwrap_or_else(|| home.results()),
            #[cfg(debug_assertions)]
            mutant: self.mutant.clone(),
            #[cfg(not(debug_assertions))]
            mutant: None,
        }
    }
}

#[cfg(debug_assertions)]
fn mutant(name: &str) -> Result<String, String> {
    let mut known: Vec<&str> = crate::resource::Mutant::ALL.map(|m| m.name()).to_vec();
    known.push(crate::fault::Nemesis::MUTANT);
    match known.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("known: {}", known.join(", "))),
    }
}

/// How often each outcome came, case by case.
#[derive(Default)]
struct Tally {
    cases: BTreeMap<(String, String), BTreeMap<Outcome, u32>>,
}

impl Tally {
    fn add(&mut self, run: &RunRecord) {
        for case in &run.cases {
            let name = (run.scenario.clone(), case.name.clone());
            let outcomes = self.cases.entry(name).or_default();
            *outcomes.entry(case.verdict.outcome).or_default() += 1;
        }
    }

    fn worst(&self) -> Outcome {
        let all = self.cases.values().flat_map(|outcomes| outcomes.keys());
        all.min().copied().unwrap_or(Outcome::Inconclusive)
    }

    fn table(&self) -> String {
        let mut text = String::new();
        for ((scenario, case), outcomes) in &self.cases {
            let total: u32 = outcomes.values().sum();
            let counts: Vec<String> = outcomes
                .iter()
                .map(|(outcome, count)| format!("{outcome} {count} of {total}"))
                .collect();
            text.push_str(&format!("{scenario} {case}: {}\n", counts.join(", ")));
        }
        text
    }
}
