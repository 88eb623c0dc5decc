//! The options that a person chose for runs, and the lab in which the runs happen.

use super::*;
use crate::builtin::Location;
use crate::cluster::topology::{Service, Topology};
use crate::cluster::{COMMAND_IMAGE, Image, Need, Runtime};
use crate::faults::{needs, proxy_of};
use crate::model::ResourceKind;
use crate::scenario::Setting;
use crate::simulation::SimulatedRuntime;
use clap::{Args, ValueEnum};
use std::borrow::Cow;

/// A case with more containers than this takes more than one slot.
const CONTAINERS_PER_SLOT: usize = 20;

/// What every command that runs scenarios takes. The command line fills it, the run reads it.
#[derive(Args, Clone, Debug, Default)]
pub struct RunOptions {
    /// Choose what to run on
    #[arg(long, value_enum, default_value_t, value_name = "WHAT")]
    pub runtime: RuntimeChoice,
    /// Seed every random choice of a run
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Run N times and report how often each outcome came, with a 95 % confidence interval
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000), value_name = "N")]
    pub repeat: u32,
    /// Run N cases at the same time, each on containers of its own; one with more than 20 of
    /// them counts as several. The default is two for each core, and at most 8
    #[arg(long, default_value_t = jobs(), value_parser = clap::value_parser!(u32).range(1..=16), value_name = "N")]
    pub jobs: u32,
    /// Use attached servers although they look like production
    #[arg(long)]
    pub yes: bool,
    /// Override a field of the scenario and its cases, such as lock.ttl=5s
    #[arg(long, value_name = "FIELD=VALUE")]
    pub set: Vec<Setting>,
    /// Write results to DIR [default: results/]
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
    /// Switch a defect on, to see that it is caught
    #[cfg_attr(debug_assertions, arg(long, hide = true, value_parser = mutant))]
    #[cfg_attr(not(debug_assertions), arg(skip))]
    pub mutant: Option<String>,
    /// Only these cases, or the cases of these services; without any, all.
    #[arg(skip)]
    pub cases: Vec<String>,
    /// Leave the containers for looking at.
    #[arg(skip)]
    pub keep: bool,
    /// After an error, go on with whatever else there is to run.
    #[arg(skip)]
    pub keep_going: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RuntimeChoice {
    /// Containers where Docker answers; else, unless CI is set, local processes. What is only
    /// simulated is simulated
    #[default]
    Auto,
    /// Containers
    Docker,
    /// Processes of this machine: its own redis-server, etcd, postgres and mariadbd
    Local,
    /// A simulation in virtual time: what it lacks makes a case inconclusive, with the reason
    Sim,
}

/// The place where runs happen, and everything that they are made from.
#[derive(Clone, Copy)]
pub struct Lab<'a> {
    pub options: &'a RunOptions,
    pub runtime: &'a dyn Runtime,
    /// Every topology that a case may name.
    pub topologies: &'a BTreeMap<String, Topology>,
    /// The resources that a case may choose in place of its topology's own.
    pub resources: &'a BTreeMap<ResourceKind, Service>,
    /// The server of every link's proxy.
    pub toxiproxy: &'a Service,
    /// The folders that folders of images are relative to; the first that has one counts.
    pub home: &'a [Location],
    /// The folder of the journals, which are kept until their faults are undone.
    pub journals: &'a Path,
    pub results: &'a Path,
    pub groundwork: &'a Groundwork,
    pub progress: &'a dyn Progress,
    pub interrupt: &'a CancellationToken,
}

impl RunOptions {
    /// Returns the cases to run, in the order of the file.
    pub fn chosen<'a>(&'a self, scenario: &'a Scenario) -> impl Iterator<Item = &'a Case> {
        let is_chosen = |case: &&Case| {
            let mut only = self.cases.iter();
            self.cases.is_empty() || only.any(|only| case.is_called(only))
        };
        scenario.cases.iter().filter(is_chosen)
    }

    /// Returns what to run these on: what exists in the simulation only needs nothing else.
    pub fn runtime_of(&self, scenarios: &[Scenario]) -> RuntimeChoice {
        let mut all = scenarios.iter();
        let are_simulated = !scenarios.is_empty() && all.all(Scenario::is_only_simulated);
        match self.runtime {
            RuntimeChoice::Auto if are_simulated => RuntimeChoice::Sim,
            chosen => chosen,
        }
    }

    /// Returns whether a run of everything leaves this out: a load needs the machine for itself,
    /// and what is only simulated cannot be played on the real servers that were asked for.
    pub fn leaves_out(&self, scenario: &Scenario) -> bool {
        let on_real_servers = match self.runtime {
            RuntimeChoice::Docker | RuntimeChoice::Local => true,
            RuntimeChoice::Auto | RuntimeChoice::Sim => false,
        };
        scenario.is_load() || on_real_servers && scenario.is_only_simulated()
    }

    /// Returns the record of a run that has not begun.
    pub fn record(&self, scenario: &Scenario) -> RunRecord {
        RunRecord {
            mutant: self.mutant.clone(),
            unfinished: self
                .chosen(scenario)
                .map(|case| case.name.clone())
                .collect(),
            ..new_record(scenario, self.seed)
        }
    }
}

/// Returns the record of a run of all cases, before the first case.
pub fn new_record(scenario: &Scenario, seed: u64) -> RunRecord {
    let all = scenario.cases.iter();
    RunRecord {
        scenario: scenario.name.clone(),
        scenario_hash: scenario.hash(),
        seed: Some(seed),
        settings: scenario.settings.words(),
        mutant: None,
        cases: Vec::new(),
        unfinished: all.map(|case| case.name.clone()).collect::<Vec<Name>>(),
        environment: BTreeMap::new(),
        folder: PathBuf::new(),
    }
}

impl Lab<'_> {
    /// Returns the topology of a case, with the resource that the case chose.
    pub fn topology(&self, case: &Case) -> Cow<'_, Topology> {
        let topology = &self.topologies[&case.setup.topology];
        let attach = case.setup.attach.as_ref();
        let topology = match attach {
            None => Cow::Borrowed(topology),
            Some(attach) => Cow::Owned(topology.attached_to(attach, case.setup.lock.backend)),
        };
        let chosen = case
            .setup
            .resource
            .filter(|kind| *kind != topology.resource_kind);
        let chosen = chosen.and_then(|kind| Some((kind, self.resources.get(&kind)?)));
        match chosen {
            None => topology,
            Some((kind, service)) => Cow::Owned(topology.into_owned().with_resource(kind, service)),
        }
    }

    /// Returns the image of the case's workers, if they are not this program.
    pub fn worker_image(&self, case: &Case) -> Option<Image> {
        let worker = &case.setup.worker;
        match &worker.image {
            Some(name) => Some(Image::named(name, self.home)),
            None if worker.command.is_empty() => None,
            None => Some(Image {
                name: COMMAND_IMAGE.to_owned(),
                build: None,
            }),
        }
    }

    /// Returns whether a case is played in simulated time. Unless somebody chose otherwise, that is
    /// so for what exists there only.
    pub fn simulates(&self, case: &Case) -> bool {
        let may_choose = self.options.runtime == RuntimeChoice::Auto;
        self.runtime.simulates() || may_choose && case.setup.only_simulated().is_some()
    }

    /// Returns why a case cannot be played here; None if nothing prevents it. This is asked before
    /// anything is started.
    pub fn lacking(&self, case: &Case) -> Option<String> {
        let nodes = CaseNodes::new(self, case);
        let runtime = match (self.simulates(case), case.setup.only_simulated()) {
            (true, _) => &SimulatedRuntime as &dyn Runtime,
            (false, None) => self.runtime,
            (false, Some(backend)) => {
                return Some(format!("{backend} is only simulated; use --runtime sim"));
            }
        };
        let led = nodes.reach().keys().next();
        let proxy = led.map(|source| self.toxiproxy.node(&proxy_of(source)));
        let started = nodes.services.iter().chain(&nodes.workers).chain(&proxy);
        let mut unstartable = started.filter_map(|node| {
            let reason = runtime.lacks(Need::Node(node))?;
            Some(format!("{}: {reason}", node.name))
        });
        unstartable.next().or_else(|| {
            let faults = case.setup.faults();
            let mut impossible = faults.into_iter().filter_map(|fault| {
                let needs = needs(fault, &nodes.services, nodes.reach());
                let mut needs = needs.into_iter().chain(nodes.need_at_attached(fault));
                let reason = needs.find_map(|need| runtime.lacks(need))?;
                Some(format!("{} of {}: {reason}", fault.kind(), fault.target()))
            });
            impossible.next().or_else(|| match runtime.simulates() {
                true => simulated::lacking(case),
                false => None,
            })
        })
    }

    /// Returns how many slots a case takes. A load runs alone, because everything beside it would
    /// be measured too. A case that needs a certain port of this machine, or changes a server that
    /// others use, runs alone as well.
    pub fn weight(&self, case: &Case) -> u32 {
        let nodes = CaseNodes::new(self, case);
        let mut ports = nodes.services.iter().flat_map(|node| &node.ports);
        let changes_servers = case.setup.attach.as_ref().is_some_and(|attach| {
            !(attach.allow_faults_on.is_empty() && attach.allow_settings_on.is_empty())
        });
        if case.setup.load.is_some() || changes_servers || ports.any(|port| port.host != 0) {
            return u32::MAX;
        }
        // Every source has a proxy of its own.
        weight_of(nodes.services.len() + nodes.workers.len() + nodes.reach().len())
    }
}

fn weight_of(containers: usize) -> u32 {
    let slots = containers.div_ceil(CONTAINERS_PER_SLOT);
    u32::try_from(slots).unwrap_or(u32::MAX)
}

/// Returns the default of `--jobs`. Cases mostly wait, so a core runs two at a time; more than
/// eight run only on request.
fn jobs() -> u32 {
    let cores = std::thread::available_parallelism();
    cores.map_or(2, |cores| (2 * cores.get()).clamp(2, 8) as u32)
}

#[cfg(debug_assertions)]
pub fn mutant(name: &str) -> Result<String, String> {
    let known = super::mutant::mutants();
    if known.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(format!("known: {}", known.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_weighs_by_its_containers() {
        for (containers, weight) in [(1, 1), (11, 1), (20, 1), (21, 2), (66, 4)] {
            assert_eq!(weight_of(containers), weight, "{containers}");
        }
    }
}
