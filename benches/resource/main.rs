//! How many durable writes a second the resources take, beside a Redis that syncs every write and
//! beside bare conditional updates of a Postgres: `cargo bench --bench resource`. Candidates take turns
//! within one run; see CONTRIBUTING.md.

mod http;
mod postgres;
mod redis;
mod turns;

#[path = "../locks/numbers.rs"]
mod numbers;
#[path = "../locks/targets.rs"]
#[allow(dead_code, reason = "the locks have other bounds as well")]
mod targets;

#[path = "../../tests/suite/support"]
#[allow(dead_code, unused_imports, reason = "the tests use the rest of it")]
mod support {
    pub mod docker;
    pub mod said;
    pub mod servers;
    pub mod session;
}

use clap::{Parser, ValueEnum};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use targets::Targets;

type Trouble = Box<dyn Error + Send + Sync>;

#[derive(Clone, Debug, Parser)]
#[command(about = "Durable writes a second of the resources, beside their floors.")]
struct Arguments {
    /// What to measure; everything if nothing is named.
    what: Vec<What>,
    /// How many connections each candidate has.
    #[arg(long, default_value_t = 64)]
    connections: usize,
    /// How often each candidate has its turn.
    #[arg(long, default_value_t = 9)]
    rounds: usize,
    /// How long one turn takes.
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    /// Exits with 1 if a target was missed.
    #[arg(long)]
    strict: bool,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum What {
    /// The HTTP resource beside a Redis with appendfsync always.
    Http,
    /// The tables of a Postgres beside a bare conditional update.
    Postgres,
}

impl Arguments {
    fn turn(&self) -> Duration {
        Duration::from_secs(self.seconds.max(1))
    }
}

/// The value that everybody writes, as long as that of a worker.
const VALUE: &str = r#"{"by":"worker-1","count":123456,"token":123456}"#;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match measure(&arguments) {
        Ok(targets) if arguments.strict && targets.missed() => ExitCode::FAILURE,
        Ok(_) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("benchmark: {trouble}");
            ExitCode::from(2)
        }
    }
}

fn measure(arguments: &Arguments) -> Result<Targets, Trouble> {
    let connections = arguments.connections;
    println!("{connections} connections, each with a key of its own, one write at a time.");
    // All clients share one thread: the other cores are for the server.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut targets = Targets::default();
    for what in What::value_variants() {
        if arguments.what.is_empty() || arguments.what.contains(what) {
            targets.add(runtime.block_on(async {
                match what {
                    What::Http => http::measure(arguments).await,
                    What::Postgres => postgres::measure(arguments).await,
                }
            })?);
        }
    }
    println!("\n{targets}");
    Ok(targets)
}
