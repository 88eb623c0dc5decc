//! `fencepost clock`: the clocks of one process, or of a container's first process.

mod beside;
mod told;

use super::*;
use crate::clock::{ClockState, Deed, Offset, Rate};
use clap::{Args, Subcommand};

#[derive(Args)]
pub struct Clock {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Show what the clocks are shifted by now
    Show(Target),
    /// Set clocks ahead of the host's, or behind; their rate stays
    Set(Set),
    /// Make clocks run faster or slower than the host's, from where they are
    Drift(Drift),
    /// Give the process its own clocks back, byte for byte
    Undo(Target),
}

#[derive(Args)]
struct Target {
    /// A process id, or the name or id of a container
    #[arg(value_name = "TARGET")]
    target: String,
    /// Do the same to every process that it has started
    #[arg(long)]
    children: bool,
    #[command(flatten)]
    printed: OutputFormat,
    /// Go through a helper container, even where the host would do
    #[cfg(debug_assertions)]
    #[arg(long, hide = true)]
    helper: bool,
}

#[derive(Args)]
#[group(id = "clocks", required = true, multiple = true, args = ["realtime", "monotonic"])]
struct Set {
    #[command(flatten)]
    target: Target,
    /// The time of day: Redis expires keys by it
    #[arg(long, value_name = "+15s|-60s", allow_hyphen_values = true)]
    realtime: Option<Offset>,
    /// Time since the boot: etcd's leases and Rust's Instant run on it. Backwards freezes timers
    #[arg(long, value_name = "+15s", allow_hyphen_values = true)]
    monotonic: Option<Offset>,
}

#[derive(Args)]
#[group(id = "rates", required = true, multiple = true, args = ["realtime", "monotonic"])]
struct Drift {
    #[command(flatten)]
    target: Target,
    /// The time of day, in millionths
    #[arg(long, value_name = "500ppm", allow_hyphen_values = true)]
    realtime: Option<Rate>,
    /// Time since the boot, in millionths
    #[arg(long, value_name = "500ppm", allow_hyphen_values = true)]
    monotonic: Option<Rate>,
}

impl Target {
    /// Returns whether a helper container is required. Only test builds have the option.
    fn by_helper(&self) -> bool {
        #[cfg(debug_assertions)]
        return self.helper;
        #[cfg(not(debug_assertions))]
        return false;
    }
}

/// An operation on clocks, and its target.
struct Order {
    target: Target,
    deed: Deed,
}

impl Clock {
    pub fn execute(self) -> Result<Exit, Failure> {
        let order = self.action.order();
        match order.target.target.parse::<i32>() {
            Ok(pid) => order.do_to(pid),
            Err(_) => super::block_on(beside::do_to_container(order)),
        }
    }
}

impl Action {
    fn order(self) -> Order {
        let (target, deed) = match self {
            Action::Show(target) => (target, Deed::Show),
            Action::Undo(target) => (target, Deed::Undo),
            Action::Set(set) => (set.target, Deed::Set(named(set.realtime, set.monotonic))),
            Action::Drift(drift) => (
                drift.target,
                Deed::Drift(named(drift.realtime, drift.monotonic)),
            ),
        };
        Order { target, deed }
    }
}

fn named<T>(realtime: Option<T>, monotonic: Option<T>) -> Vec<(ClockName, T)> {
    let all = ClockName::ALL.into_iter().zip([realtime, monotonic]);
    all.filter_map(|(clock, value)| Some((clock, value?)))
        .collect()
}

impl Order {
    fn do_to(&self, pid: i32) -> Result<Exit, Failure> {
        let before = vdso_clock::show(pid)?;
        let after = match self.target.children {
            true => self.deed.do_to_family(pid)?,
            false => self.deed.do_to(pid)?,
        };
        let what = told::process(pid);
        self.tell(&what, before, after)
    }

    fn tell(&self, what: &str, before: ClockState, after: ClockState) -> Result<Exit, Failure> {
        if !matches!(self.deed, Deed::Show) {
            for warning in told::warnings(before, after) {
                output::complain(format_args!("warning: {warning}"));
            }
        }
        self.print(what, after)
    }

    fn print(&self, what: &str, state: ClockState) -> Result<Exit, Failure> {
        let text = told::state(what, state) + "\n";
        self.target.printed.show(&state, text)
    }
}
