//! The command line: arguments in, an exit code out. One file per command.

mod batch;
mod bless;
mod check;
mod clean;
mod clock;
mod completions;
mod contend;
mod diff;
mod doctor;
mod down;
mod exit;
mod format;
mod generate;
mod home;
mod images;
mod interrupt;
mod keyspace;
mod list;
mod load;
mod manual;
mod nightly;
mod open_files;
mod output;
mod overview;
mod plan;
mod playground;
mod progress;
mod recorded;
mod report;
mod resource;
mod run;
mod runs_document;
mod runtime;
mod schema;
mod state;
mod toxiproxy;
mod up;
mod validate;
mod worker;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};
use exit::{Exit, Failure};
use home::Home;
use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;

/// Proves with real containers whether a distributed lock is safe.
///
/// Exit codes: 0 as expected, 1 not as expected, 2 inconclusive, 64 wrong usage
/// or invalid scenario, 69 Docker or a needed program is not there or this
/// machine cannot do it, 70 the harness itself failed or left something behind,
/// 130 interrupted.
#[derive(Parser)]
#[command(name = "fencepost", version, disable_help_subcommand = true)]
struct Arguments {
    /// The folder with scenarios/ and compose/ [default: this one or the nearest above it]
    #[arg(long, global = true, env = "FENCEPOST_HOME", value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
    /// Show the scenarios there are
    List(list::List),
    /// Show what a run would do, step by step, without doing it
    Plan(plan::Plan),
    /// Check scenario and compose files, all errors at once, without Docker
    Validate(validate::Validate),
    /// Print the JSON Schema of a scenario file, for editors, or that of a result
    Schema(schema::Schema),
    /// Judge a recorded run again, without Docker
    Check(check::Check),
    Contend(contend::Contend),
    Keyspace(keyspace::Keyspace),
    Diff(diff::Diff),
    Report(report::Report),
    Nightly(nightly::Nightly),
    Bless(bless::Bless),
    /// Build or fetch the images that the topologies need
    Images(format::Printed),
    /// Say what is missing on this machine, and the command that mends it
    Doctor(format::Printed),
    /// Remove everything that earlier runs left behind or kept, and what is up
    Clean(clean::Clean),
    Up(up::Up),
    Down(down::Down),
    /// Skew the clocks of one running process or container, and of nothing else
    Clock(clock::Clock),
    /// Fill a Redis with a great many short-lived locks, the same from the same seed
    #[command(name = "gen")]
    Generate(generate::Generate),
    Completions(completions::Completions),
    /// Print the manual page: fencepost man > ~/.local/share/man/man1/fencepost.1
    Man,
    /// The worker role: acquire, write, release, told in JSON lines
    Worker(crate::worker::WorkerTask),
    /// The probe beside a node: questions on stdin, what TCP sees on stdout
    #[command(hide = true)]
    Probe,
    /// The resource role: an HTTP service that enforces fencing tokens
    Resource(resource::Resource),
    /// The Toxiproxy role: proxies that make connections fail on demand
    Toxiproxy(toxiproxy::Toxiproxy),
}

impl Command {
    /// Whether a program reads what it prints; then errors are a document too.
    fn prints_json(&self) -> bool {
        let printed = match self {
            Command::Run(command) => &command.printed,
            Command::List(command) => &command.printed,
            Command::Plan(command) => &command.printed,
            Command::Validate(command) => &command.printed,
            Command::Check(command) => &command.printed,
            Command::Contend(command) => &command.printed,
            Command::Keyspace(command) => &command.printed,
            Command::Report(command) => &command.printed,
            Command::Nightly(command) => &command.printed,
            Command::Bless(command) => &command.printed,
            Command::Clean(command) => &command.printed,
            Command::Up(command) => &command.printed,
            Command::Down(command) => &command.printed,
            Command::Generate(command) => &command.printed,
            Command::Images(printed) | Command::Doctor(printed) => printed,
            Command::Clock(command) => return command.prints_json(),
            Command::Diff(command) => return command.format == format::Format::Json,
            _ => return false,
        };
        printed.is_json()
    }
}

pub fn main() -> ExitCode {
    open_files::take_all();
    let arguments = toxiproxy::with_two_dashes(std::env::args_os());
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            let asked_for = matches!(
                error.kind(),
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
            );
            if asked_for {
                // A closed pipe is no reason to fail.
                let _ = error.print();
                return Exit::AsExpected.into();
            }
            // It quotes what was typed, or what a script made of a file's name.
            output::complain(error.render().to_string().trim_end());
            return Exit::Usage.into();
        }
    };
    let prints_json = arguments.command.prints_json();
    match dispatch(arguments) {
        Ok(exit) => exit.into(),
        Err(failure) => {
            if prints_json {
                // Whoever cannot be told this cannot be told anything.
                let _ = format::document(&failure.document());
            }
            output::complain(format_args!("error: {failure}"));
            failure.exit.into()
        }
    }
}

fn dispatch(arguments: Arguments) -> Result<Exit, Failure> {
    let home = || Home::find(arguments.home.as_deref());
    match arguments.command {
        Command::Run(command) => block_on(command.execute(home()?)),
        Command::List(list) => list.execute(&home()?),
        Command::Plan(command) => command.execute(&home()?),
        Command::Validate(command) => command.execute(&home()?),
        Command::Schema(command) => command.execute(),
        Command::Check(command) => command.execute(),
        Command::Contend(command) => block_on(command.execute(arguments.home.as_deref())),
        Command::Keyspace(command) => block_on(command.execute(arguments.home.as_deref())),
        Command::Diff(command) => command.execute(home),
        Command::Report(command) => command.execute(),
        Command::Images(printed) => block_on(images::execute(home()?, printed)),
        Command::Doctor(printed) => block_on(doctor::execute(home(), printed)),
        Command::Nightly(command) => block_on(command.execute(home()?)),
        Command::Bless(command) => command.execute(&home()?),
        Command::Clean(command) => block_on(command.execute()),
        Command::Up(command) => block_on(command.execute(home()?)),
        Command::Down(command) => block_on(command.execute()),
        Command::Completions(command) => command.execute(Arguments::command(), home().ok()),
        Command::Man => manual::execute(Arguments::command()),
        Command::Clock(command) => command.execute(),
        Command::Generate(command) => command.execute(),
        Command::Worker(task) => worker::execute(task),
        Command::Resource(command) => block_on(command.execute()),
        Command::Probe => block_on(async {
            crate::fault::probe::run().await.map_err(Failure::harness)?;
            Ok(Exit::AsExpected)
        }),
        Command::Toxiproxy(command) => block_on(command.execute()),
    }
}

fn block_on(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    // Its own choice would go by TOKIO_WORKER_THREADS, and panic about what it finds there.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(Failure::harness)?;
    let result = runtime.block_on(work);
    // Nothing that still hangs in the background may hold the exit up.
    runtime.shutdown_background();
    result
}
