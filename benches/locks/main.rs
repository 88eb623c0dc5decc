//! How fast the locks are, beside the bare commands and beside their peers:
//! `cargo bench --bench locks`. Ratios are taken within one run, where the
//! candidates take turns; see CONTRIBUTING.md.

mod blocks;
mod contest;
mod etcd;
mod five_nodes;
mod hot_key;
mod numbers;
mod order;
mod peers;
mod placement;
mod servers;
mod targets;
mod uncontended;

use clap::{Parser, ValueEnum};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use targets::Targets;

type Trouble = Box<dyn Error + Send + Sync>;

#[derive(Clone, Debug, Parser)]
#[command(about = "Ratios of the locks to the bare commands and to their peers.")]
struct Arguments {
    /// What to measure; everything if nothing is named.
    what: Vec<What>,
    /// Puts this program and the servers on one core: compare only within one placement.
    #[arg(long, value_name = "CORE")]
    pin: Option<usize>,
    /// How often each candidate has its turn.
    #[arg(long)]
    rounds: Option<usize>,
    /// How many acquires and releases one turn has.
    #[arg(long, default_value_t = 200)]
    pairs: usize,
    /// How long one turn on a hot key takes: on Redis 2,000, on etcd 5,000.
    #[arg(long)]
    hot_ms: Option<u64>,
    /// How many fight for a hot key.
    #[arg(long, value_delimiter = ',', default_values_t = [50, 200])]
    contenders: Vec<usize>,
    /// Exits with 1 if a target was missed.
    #[arg(long)]
    strict: bool,
    /// Cargo says this to every benchmark.
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
enum What {
    /// Acquire and release, one Redis, nobody else there.
    Uncontended,
    /// The same on five Redis nodes.
    FiveNodes,
    /// Five nodes of which one is stopped or frozen.
    NodeDown,
    /// Many who want one key of one Redis.
    HotKey,
    /// Acquire and release on three etcd members.
    Etcd,
    /// Many who want one key of etcd.
    EtcdHotKey,
}

impl Arguments {
    fn rounds(&self, usual: usize) -> usize {
        self.rounds.unwrap_or(usual).max(1)
    }

    fn hot(&self, usual: Duration) -> Duration {
        self.hot_ms.map_or(usual, Duration::from_millis)
    }
}

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
    println!("{}", placement::choose(arguments.pin)?);
    servers::build_images()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let all = What::value_variants();
    let wanted = all
        .iter()
        .filter(|what| arguments.what.is_empty() || arguments.what.contains(what));
    let mut targets = Targets::default();
    for what in wanted {
        // On a worker thread, as a user's task would be: the thread that
        // blocks on a runtime is woken more slowly than its workers.
        let task = runtime.spawn(one(*what, arguments.clone()));
        let seen = runtime.block_on(task)??;
        targets.add(seen);
    }
    println!("\n{targets}");
    Ok(targets)
}

async fn one(what: What, arguments: Arguments) -> Result<Targets, Trouble> {
    match what {
        What::Uncontended => uncontended::measure(&arguments).await,
        What::FiveNodes => five_nodes::measure(&arguments).await,
        What::NodeDown => five_nodes::measure_with_a_node_down(&arguments).await,
        What::HotKey => hot_key::measure(&arguments).await,
        What::Etcd => etcd::measure(&arguments).await,
        What::EtcdHotKey => etcd::measure_hot_key(&arguments).await,
    }
}
