//! The command line: arguments in, an exit code out. One file per command.

mod bless;
mod certify;
mod check;
mod clean;
mod clock;
mod completions;
mod contend;
mod diff;
mod doctor;
mod down;
mod eject;
mod exit;
mod explore;
mod format;
mod generate;
mod home;
mod images;
mod init;
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
mod runs;
mod runs_document;
mod runtime;
mod s3;
mod schema;
mod state;
mod subject;
mod toxiproxy;
mod trial;
mod up;
mod validate;
mod worker;
mod worker_check;

use crate::model::*;
use crate::report::{shown, terminal};
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use exit::{Exit, Failure};
use format::{Format, OutputFormat, document};
use home::Home;
use progress::look;
use recorded::read_result;
use serde::Serialize;
use serde_json::{Value, json};
use state::State;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Prove with real containers whether a distributed lock is safe.
///
/// Exit codes: 0 as expected, 1 not as expected, 2 inconclusive, 64 wrong usage
/// or invalid scenario, 69 Docker or a needed program is missing or this
/// machine cannot do it, 70 the harness itself failed or left something behind,
/// 130 interrupted.
#[derive(Parser)]
#[command(name = "fencepost", version, disable_help_subcommand = true)]
struct Arguments {
    /// Look for own scenarios/ and compose/ in DIR, beside the built-in ones [default: ./fencepost,
    /// here or in the nearest folder above, or a checkout of fencepost]
    #[arg(long, global = true, env = "FENCEPOST_HOME", value_name = "DIR")]
    home: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(run::Run),
    /// List the scenarios
    List(list::List),
    /// Show what a run would do, step by step, without doing it
    Plan(plan::Plan),
    /// Check scenario and compose files, all errors at once, without Docker
    Validate(validate::Validate),
    /// Print the JSON Schema of a scenario file, for editors, or of a result
    Schema(schema::Schema),
    /// Judge a recorded run again, without Docker
    Check(check::Check),
    Contend(contend::Contend),
    Keyspace(keyspace::Keyspace),
    Diff(diff::Diff),
    Report(report::Report),
    Init(init::Init),
    Try(trial::Try),
    WorkerCheck(worker_check::WorkerCheck),
    Certify(certify::Certify),
    Explore(explore::Explore),
    Nightly(nightly::Nightly),
    Bless(bless::Bless),
    Eject(eject::Eject),
    /// Build or fetch the images that the topologies need
    Images(OutputFormat),
    /// Report what is missing on this machine, and the command that fixes it
    Doctor(OutputFormat),
    /// Remove everything that earlier runs left behind or kept, and the topologies that are up
    Clean(clean::Clean),
    Up(up::Up),
    Down(down::Down),
    /// Skew the clocks of one running process or container, and of nothing else
    Clock(clock::Clock),
    /// Fill a Redis with a great many short-lived locks, the same for the same seed
    #[command(name = "gen")]
    Generate(generate::Generate),
    Completions(completions::Completions),
    /// Print the manual page: fencepost man > ~/.local/share/man/man1/fencepost.1
    Man,
    /// Run the worker role: acquire, write, release, and report in JSON lines
    Worker(crate::worker::WorkerTask),
    /// Run the probe beside a node: questions on stdin, what TCP sees on stdout
    #[command(hide = true)]
    Probe,
    /// Run the resource role: an HTTP service that enforces fencing tokens
    Resource(resource::Resource),
    S3(s3::S3),
    /// Run the Toxiproxy role: proxies that make connections fail on demand
    Toxiproxy(toxiproxy::Toxiproxy),
}

/// Returns whether the output is JSON; then errors are printed as a document too.
fn prints_json(command: &ArgMatches) -> bool {
    let format = command.try_get_one::<Format>("format");
    format.is_ok_and(|format| format == Some(&Format::Json))
        || command
            .subcommand()
            .is_some_and(|(_, below)| prints_json(below))
}

pub fn main() -> ExitCode {
    open_files::take_all();
    let arguments = toxiproxy::with_two_dashes(std::env::args_os());
    let matches = match Arguments::command().try_get_matches_from(arguments) {
        Ok(matches) => matches,
        Err(error) => return refused(&error),
    };
    let prints_json = prints_json(&matches);
    let failure = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => match dispatch(arguments) {
            Ok(exit) => return exit.into(),
            Err(failure) => failure,
        },
        Err(error) => return refused(&error),
    };
    if prints_json {
        // If this cannot be printed, nothing else can be printed either.
        let _ = document(&failure.document());
    }
    output::complain(format_args!("error: {failure}"));
    failure.exit.into()
}

/// Handles a command line that asks for help or is wrong.
fn refused(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        // A closed pipe is not a failure.
        let _ = error.print();
        return Exit::AsExpected.into();
    }
    // The error quotes the input, which a script may have made from the name of a file.
    output::complain(error.render().to_string().trim_end());
    Exit::Usage.into()
}

fn dispatch(arguments: Arguments) -> Result<Exit, Failure> {
    let home = || Home::find(arguments.home.as_deref());
    let first_home = || Home::find_or_begin(arguments.home.as_deref());
    match arguments.command {
        Command::Run(command) => block_on(command.execute(home()?)),
        Command::List(list) => list.execute(&home()?),
        Command::Plan(command) => command.execute(&home()?),
        Command::Validate(command) => command.execute(&home()?),
        Command::Schema(command) => command.execute(),
        Command::Check(command) => command.execute(home),
        Command::Contend(command) => block_on(command.execute(arguments.home.as_deref())),
        Command::Keyspace(command) => block_on(command.execute(arguments.home.as_deref())),
        Command::Diff(command) => command.execute(home),
        Command::Report(command) => command.execute(home),
        Command::Eject(command) => command.execute(&first_home()?),
        Command::Init(command) => block_on(command.execute(first_home()?)),
        Command::Try(command) => block_on(command.execute(home()?)),
        Command::WorkerCheck(command) => block_on(command.execute(home()?)),
        Command::Certify(command) => block_on(command.execute()),
        Command::Explore(command) => block_on(command.execute(home()?)),
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
        Command::S3(command) => block_on(command.execute()),
        Command::Probe => block_on(async {
            crate::faults::probe::run()
                .await
                .map_err(Failure::harness)?;
            Ok(Exit::AsExpected)
        }),
        Command::Toxiproxy(command) => block_on(command.execute()),
    }
}

fn block_on(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    // Tokio's own default reads TOKIO_WORKER_THREADS and panics if that is invalid.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(Failure::harness)?;
    let result = runtime.block_on(work);
    // A blocked background task must not delay the exit.
    runtime.shutdown_background();
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_listens_beyond_this_machine_unless_it_is_told_to() {
        let commands = Arguments::command();
        let addresses = commands.get_subcommands().flat_map(|command| {
            let arguments = command.get_arguments();
            arguments.filter(|argument| {
                ["listen", "host", "metrics"].contains(&argument.get_id().as_str())
            })
        });
        let mut defaults = 0;
        for default in addresses.flat_map(|address| address.get_default_values()) {
            let default = default.to_str().expect("text");
            let host = default.split(':').next();
            assert!(matches!(host, Some("127.0.0.1" | "localhost")), "{default}");
            defaults += 1;
        }
        assert_eq!(
            defaults, 3,
            "the resource, the S3 and the proxy; metrics have none"
        );
    }
}
