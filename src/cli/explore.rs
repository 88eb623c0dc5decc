//! `explore`: a search for what nobody thought of.

use super::progress::ProgressDisplay;
use super::runtime::{OpenRuntime, open};
use super::*;
use crate::explore::{Budget, Explored, Search, State, Subject};
use crate::progress::Progress;
use crate::run::{Groundwork, Lab, RunOptions, RuntimeChoice, WorkerLimits, prepare_for};
use crate::scenario::{Setting, Settings};
use crate::yaml;
use std::time::Instant;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Below the folder of results.
const FOLDER: &str = "explore";
const UNLESS_TOLD: Duration = Duration::from_secs(60);
const LOCAL_JOBS_A_CORE: u32 = 4;
const MOST_JOBS: u32 = 64;

/// Search for a course of events in which a lock breaks its word
///
/// Draws variations of a scenario's cases, or of two workers that want one key, plays them, and judges
/// each by the promises alone: with the fence on, nothing may be corrupted and no promise of the lock
/// broken; with `--set fence=off`, what the resource accepts out of order counts as well. What breaks one is
/// made small and written as a scenario below results/explore/. Exit codes: 0 nothing was found, 1
/// something was, 130 interrupted; what was found until then is kept.
#[derive(Args)]
pub struct Explore {
    /// Vary the cases of this scenario: its name, or the path of its file [default: two workers and
    /// one key of a lock; choose it with --set lock.backend=…]
    #[arg(value_name = "SCENARIO")]
    scenario: Option<String>,
    /// Vary only this case, or the cases on this service; may be given more than once
    #[arg(long, value_name = "NAME", requires = "scenario")]
    case: Vec<String>,
    /// Choose what to play on
    #[arg(long, value_enum, default_value = "sim", value_name = "WHAT")]
    runtime: RuntimeChoice,
    /// Play N tries at the same time [default: for each core one in a simulation, and four on local
    /// processes, which mostly wait; 2 on docker]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_JOBS)), value_name = "N")]
    jobs: Option<u32>,
    /// Search for so long, such as 10m [default: 1m]
    #[arg(long = "for", value_name = "DURATION", conflicts_with = "tries")]
    length: Option<String>,
    /// Search for so many tries
    #[arg(long, value_name = "N")]
    tries: Option<u64>,
    /// End with the first finding
    #[arg(long)]
    until_found: bool,
    /// Draw from this seed: one seed gives the same tries
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Override a field of every case, such as lock.backend=redlock or fence=off
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<Setting>,
    /// Go on where the last search of this subject and seed ended
    #[arg(long)]
    resume: bool,
    /// Write findings to DIR/explore [default: results/]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    /// Switch a defect on, to see that it is found
    #[cfg_attr(debug_assertions, arg(long, hide = true, value_parser = crate::run::mutant))]
    #[cfg_attr(not(debug_assertions), arg(skip))]
    mutant: Option<String>,
    #[command(flatten)]
    printed: OutputFormat,
}

impl Explore {
    pub async fn execute(self, home: Home) -> Result<Exit, Failure> {
        let budget = self.budget()?;
        let subject = self.subject(&home)?;
        let progress = progress::for_this_output();
        let interrupt = interrupt::listen()?;
        let OpenRuntime { runtime, journals } = open(self.runtime, &progress).await?;
        let options = self.options();
        let results = home.results_of(&options).join(FOLDER);
        let (toxiproxy, topologies) = (home.toxiproxy()?, home.topologies()?);
        let lab = Lab {
            options: &options,
            runtime: runtime.as_ref(),
            topologies: &topologies,
            resources: &home.resources()?,
            toxiproxy: &toxiproxy,
            home: &home.layers(),
            journals: &journals,
            groundwork: &Groundwork::default(),
            results: &results,
            progress: &progress,
            interrupt: &interrupt,
        };
        let mut search = Search {
            lab: &lab,
            around: &home.surroundings()?,
            subject: &subject,
            handle: Handle::current(),
            until_found: self.until_found,
            limits: WorkerLimits::default(),
        };
        let name = &subject.name;
        if let Some(reason) = search.impossible() {
            return Err(Failure::usage(format!("cannot explore {name}: {reason}")));
        }
        let mut state = self.state(&search, results.join(format!("{name}-{}", self.seed)))?;
        if !runtime.simulates() {
            let scenarios = search.scenarios();
            prepare_for(&lab, &scenarios).await?;
            if let Some(scenario) = scenarios.first() {
                search.limits = WorkerLimits::of(&lab, &scenario.cases[0]).await?;
            }
        }
        let (first, began) = (state.explored.tries, Instant::now());
        tokio::task::block_in_place(|| search.run(&mut state, budget))?;
        self.tell(&state, first, began.elapsed(), (&progress, &interrupt))
    }

    fn budget(&self) -> Result<Budget, Failure> {
        let nothing = |what: &str| {
            Failure::usage(format!(
                "cannot explore {what}: nothing would be played; give --tries 1 or --for 1s, or more"
            ))
        };
        match (self.tries, &self.length) {
            (Some(0), _) => Err(nothing("with --tries 0")),
            (Some(tries), _) => Ok(Budget::Tries(tries)),
            (None, None) => Ok(Budget::For(UNLESS_TOLD)),
            (None, Some(text)) => match parse_duration(text) {
                Some(length) if length.is_zero() => Err(nothing(&format!("for {text}"))),
                Some(length) => Ok(Budget::For(length)),
                None => Err(Failure::usage(format!(
                    "cannot explore for `{text}`: it is not a duration; write a whole number and ms, s or m, such as 10m"
                ))),
            },
        }
    }

    fn subject(&self, home: &Home) -> Result<Subject, Failure> {
        let settings = Settings(self.set.clone());
        let Some(name) = &self.scenario else {
            return Subject::of_a_lock(&settings)
                .map_err(|error| Failure::usage(format!("cannot explore a lock: {error}")));
        };
        let scenario = home
            .library()
            .load(name, &settings, &home.surroundings()?)?;
        if scenario.is_load() {
            return Err(Failure::usage(format!(
                "cannot explore {name}: a load has no timeline to vary; name a scenario of faults"
            )));
        }
        let root = yaml::parse(Path::new(name), &scenario.text).map_err(Failure::harness)?;
        let is_chosen = |case: &str, service: Option<&str>| {
            let mut names = self.case.iter();
            self.case.is_empty() || names.any(|name| name == case || Some(name.as_str()) == service)
        };
        let subject = Subject::of_file(&scenario.name, &root, &settings, is_chosen);
        if subject.cases.is_empty() {
            let names: Vec<&str> = scenario.cases.iter().map(|it| it.name.as_str()).collect();
            let wrong = self.case.first().map_or("", String::as_str);
            let hint = yaml::suggestion(wrong, &names);
            let message = format!("cannot explore {name}: it has no case `{wrong}`; {hint}");
            return Err(Failure::usage(message));
        }
        Ok(subject)
    }

    fn options(&self) -> RunOptions {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let jobs = match self.runtime {
            RuntimeChoice::Local => LOCAL_JOBS_A_CORE * cores,
            RuntimeChoice::Sim => cores,
            RuntimeChoice::Auto | RuntimeChoice::Docker => 2,
        };
        RunOptions {
            runtime: self.runtime,
            seed: self.seed,
            repeat: 1,
            jobs: self.jobs.unwrap_or(jobs).min(MOST_JOBS),
            set: self.set.clone(),
            results: self.results.clone(),
            mutant: self.mutant.clone(),
            ..RunOptions::default()
        }
    }

    fn state(&self, search: &Search<'_>, folder: PathBuf) -> Result<State, Failure> {
        let about = search.lab.runtime.about();
        let asked = Explored {
            subject: search.subject.name.clone(),
            runtime: about.get("runtime").cloned().unwrap_or_default(),
            seed: self.seed,
            mutant: self.mutant.clone(),
            settings: Settings(self.set.clone()).words(),
            ..Explored::default()
        };
        let state = match self.resume {
            true => State::resume(folder, &asked).map_err(Failure::usage)?,
            false => State::begin(folder, asked),
        };
        state.check()?;
        Ok(state)
    }

    fn tell(
        &self,
        state: &State,
        first: u64,
        took: Duration,
        (progress, interrupt): (&ProgressDisplay, &CancellationToken),
    ) -> Result<Exit, Failure> {
        let explored = &state.explored;
        let exit = match (interrupt.is_cancelled(), explored.findings.is_empty()) {
            (true, _) => Exit::Interrupted,
            (false, true) => Exit::AsExpected,
            (false, false) => Exit::NotAsExpected,
        };
        if self.printed.is_json() {
            let mut told = json!(explored);
            told["exit_code"] = json!(exit as u8);
            document(&told)?;
            return Ok(exit);
        }
        output::line(format_args!(
            "{} on {}, seed {}: {}",
            explored.subject,
            explored.runtime,
            explored.seed,
            explored.progress(first, took)
        ))?;
        for finding in &explored.findings {
            output::line(format_args!("\n{}", finding.line()))?;
            match &finding.file {
                Some(file) => {
                    output::line(format_args!("{}:\n{}", file.display(), finding.scenario))?;
                }
                // The reason has been said.
                None => output::line(format_args!("not written:\n{}", finding.scenario))?,
            }
        }
        if explored.inconclusive * 2 > explored.tries
            && let Some((reason, times)) = explored.reasons.iter().max_by_key(|(_, times)| **times)
        {
            progress.say(&format!(
                "most tries say nothing, {times} of them: {reason}"
            ));
        }
        Ok(exit)
    }
}
