//! Progress for people: bars on a terminal, plain lines elsewhere. All of it goes to stderr, so
//! that stdout holds only the result.

mod awaited;
mod bars;
mod lines;

use super::*;
use crate::progress::{Progress, Task};
use crate::report::look::Look;
use bars::Bar;
use indicatif::MultiProgress;
use lines::Lines;
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Instant;

pub fn for_this_output() -> ProgressDisplay {
    if std::io::stderr().is_terminal() {
        ProgressDisplay::Bars(MultiProgress::new())
    } else {
        ProgressDisplay::Lines(Lines::new())
    }
}

/// The display of several tasks at once: each has its own bar, or lines that start with its name.
pub enum ProgressDisplay {
    Bars(MultiProgress),
    Lines(Lines),
}

impl ProgressDisplay {
    /// Prints a result without disturbing the bars.
    pub fn print(&self, text: impl Display) -> Result<(), Failure> {
        match self {
            ProgressDisplay::Bars(all) => all.suspend(|| output::screen(text)),
            ProgressDisplay::Lines(_) => output::screen(text),
        }
    }
}

pub fn look(all: bool) -> Look {
    Look {
        color: wants_color(),
        width: width(),
        all,
    }
}

/// Returns whether to use colour: only on a terminal, and only if the user does not object.
fn wants_color() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let dumb = set("TERM").is_some_and(|value| value == "dumb");
    forced || (std::io::stdout().is_terminal() && !dumb)
}

/// Returns the columns for text: `COLUMNS` if set, or else those of the terminal, or else no limit.
fn width() -> usize {
    let asked = std::env::var("COLUMNS").ok();
    let asked = asked.and_then(|columns| columns.parse().ok());
    let asked = asked.filter(|columns| *columns > 0);
    let real = || {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(width.0))
    };
    asked.or_else(real).unwrap_or(usize::MAX)
}

impl Progress for ProgressDisplay {
    fn say(&self, line: &str) {
        let line = shown::lines(line);
        match self {
            ProgressDisplay::Bars(all) => drop(all.println(line)),
            ProgressDisplay::Lines(lines) => lines.say(&line),
        }
    }

    fn begin(&self, what: &str) -> Box<dyn Task> {
        let what = shown::line(what);
        match self {
            ProgressDisplay::Bars(all) => Box::new(Bar::begin(&what, all)),
            ProgressDisplay::Lines(lines) => Box::new(lines.begin(&what)),
        }
    }
}

fn ended(what: &str, result: &str, started: Instant) -> String {
    format!(
        "{what}: {} ({:.1} s)",
        shown::line(result),
        started.elapsed().as_secs_f64()
    )
}
