#![doc = include_str!("../README.md")]

mod report;
mod running;

pub use report::{Case, Report, Verdict};

use running::Running;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

/// The variable that names the program.
const PROGRAM: &str = "FENCEPOST";
const LIMIT: Duration = Duration::from_secs(30 * 60);

/// A run of one scenario, before it begins.
#[derive(Clone, Debug)]
pub struct Harness {
    scenario: String,
    program: Option<PathBuf>,
    home: Option<PathBuf>,
    results: Option<PathBuf>,
    runtime: Runtime,
    seed: Option<u64>,
    cases: Vec<String>,
    settings: Vec<String>,
    limit: Duration,
}

/// What the scenario runs on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runtime {
    /// Containers where Docker answers; else, unless CI is set, local processes.
    #[default]
    Auto,
    /// Containers.
    Docker,
    /// Processes of this machine.
    Local,
    /// A simulation in virtual time.
    Sim,
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Runtime::Auto => "auto",
            Runtime::Docker => "docker",
            Runtime::Local => "local",
            Runtime::Sim => "sim",
        })
    }
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    #[error(
        "cannot start {}: {error}; install fencepost, or name it with {PROGRAM} or Harness::program",
        program.display()
    )]
    NotStarted {
        program: PathBuf,
        error: std::io::Error,
    },
    /// The scenario is invalid, something is missing, or the program failed. The exit codes are
    /// those of docs/contract.md.
    #[error("cannot run {scenario}: {message} ({})", ending(*code))]
    Failed {
        scenario: String,
        message: String,
        code: Option<i32>,
    },
    #[error("cannot run {scenario} within {limit:?}; raise Harness::limit")]
    TooLong { scenario: String, limit: Duration },
}

/// Says how the program ended.
fn ending(code: Option<i32>) -> String {
    code.map_or("without an exit code".to_owned(), |code| {
        format!("exit code {code}")
    })
}

impl Harness {
    /// Takes a scenario by its name, built in or from `./fencepost/`, or by the path of its file.
    pub fn new(scenario: impl Into<String>) -> Harness {
        Harness {
            scenario: scenario.into(),
            program: None,
            home: None,
            results: None,
            runtime: Runtime::default(),
            seed: None,
            cases: Vec::new(),
            settings: Vec::new(),
            limit: LIMIT,
        }
    }

    /// Names the program. Without it, `FENCEPOST` or the PATH does.
    pub fn program(mut self, program: impl Into<PathBuf>) -> Harness {
        self.program = Some(program.into());
        self
    }

    /// Names the folder of your own scenarios and topologies, as `--home` does.
    pub fn home(mut self, folder: impl Into<PathBuf>) -> Harness {
        self.home = Some(folder.into());
        self
    }

    /// Names the folder for what the run leaves.
    pub fn results(mut self, folder: impl Into<PathBuf>) -> Harness {
        self.results = Some(folder.into());
        self
    }

    pub fn runtime(mut self, runtime: Runtime) -> Harness {
        self.runtime = runtime;
        self
    }

    /// Seeds every random choice of the run.
    pub fn seed(mut self, seed: u64) -> Harness {
        self.seed = Some(seed);
        self
    }

    /// Runs only this case. Several calls choose several cases.
    pub fn case(mut self, name: impl Into<String>) -> Harness {
        self.cases.push(name.into());
        self
    }

    /// Overrides a field of the scenario and its cases, such as `lock.ttl=5s`.
    pub fn set(mut self, setting: impl Into<String>) -> Harness {
        self.settings.push(setting.into());
        self
    }

    /// Ends a run that takes longer. What it started is healed and removed. The default is half an
    /// hour.
    pub fn limit(mut self, limit: Duration) -> Harness {
        self.limit = limit;
        self
    }

    /// Runs the scenario. A scenario that does not come out as expected is a report, and no error.
    ///
    /// If the future is dropped, the program is asked to end; it heals and removes what it started.
    pub async fn run(&self) -> Result<Report, HarnessError> {
        let program = self.chosen_program();
        let mut command = Command::new(&program);
        command.args(self.arguments());
        let running =
            Running::start(command).map_err(|error| HarnessError::NotStarted { program, error })?;
        let ended = running.wait(self.limit).await;
        let scenario = self.scenario.clone();
        let failed = |message: String, code| HarnessError::Failed {
            scenario: scenario.clone(),
            message,
            code,
        };
        let Some(ended) = ended.map_err(|error| failed(error.to_string(), None))? else {
            let limit = self.limit;
            return Err(HarnessError::TooLong { scenario, limit });
        };
        Report::read(&ended.stdout).map_err(|message| failed(message, ended.code))
    }

    fn chosen_program(&self) -> PathBuf {
        let named = || std::env::var_os(PROGRAM).map(PathBuf::from);
        let program = self.program.clone().or_else(named);
        program.unwrap_or_else(|| PathBuf::from("fencepost"))
    }

    fn arguments(&self) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = vec!["run".into()];
        let mut option = |name: &str, value: OsString| {
            let mut argument = OsString::from(format!("--{name}="));
            argument.push(value);
            arguments.push(argument);
        };
        option("format", "json".into());
        option("runtime", self.runtime.to_string().into());
        let folder = |path: &Path| path.as_os_str().to_owned();
        let folders = [("home", &self.home), ("results", &self.results)];
        for (name, path) in folders {
            if let Some(path) = path {
                option(name, folder(path));
            }
        }
        if let Some(seed) = self.seed {
            option("seed", seed.to_string().into());
        }
        for case in &self.cases {
            option("case", case.into());
        }
        for setting in &self.settings {
            option("set", setting.into());
        }
        arguments.push("--".into());
        arguments.push(self.scenario.clone().into());
        arguments
    }
}
