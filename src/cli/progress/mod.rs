//! Progress for people: bars on a terminal, plain lines elsewhere. All of it
//! goes to stderr, so that stdout holds the result alone.

mod awaited;
mod bars;
mod lines;

use super::exit::Failure;
use super::output;
use crate::progress::{Progress, Task};
use crate::report::look::Look;
use crate::report::shown;
use bars::Bar;
use indicatif::MultiProgress;
use lines::Lines;
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::Instant;

pub fn for_this_output() -> Shown {
    match std::io::stderr().is_terminal() {
        true => Shown::Bars(MultiProgress::new()),
        false => Shown::Lines(Lines::new()),
    }
}

/// Many things can be under way: each has a bar of its own, or lines that
/// start with its name.
pub enum Shown {
    Bars(MultiProgress),
    Lines(Lines),
}

impl Shown {
    /// Prints a result, with the bars out of its way.
    pub fn print(&self, text: impl Display) -> Result<(), Failure> {
        match self {
            Shown::Bars(all) => all.suspend(|| output::screen(text)),
            Shown::Lines(_) => output::screen(text),
        }
    }
}

/// How results are written here.
pub fn look(all: bool) -> Look {
    Look {
        color: wants_color(),
        width: width(),
        all,
    }
}

/// Colour only where somebody looks and nobody objects.
fn wants_color() -> bool {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if set("NO_COLOR").is_some() {
        return false;
    }
    let forced = set("CLICOLOR_FORCE").is_some_and(|value| value != "0");
    let dumb = set("TERM").is_some_and(|value| value == "dumb");
    forced || (std::io::stdout().is_terminal() && !dumb)
}

/// Columns for text: as many as the terminal has, and no limit where there is none.
/// `COLUMNS` says otherwise.
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

impl Progress for Shown {
    fn say(&self, line: &str) {
        let line = shown::lines(line);
        match self {
            Shown::Bars(all) => drop(all.println(line)),
            Shown::Lines(lines) => lines.say(&line),
        }
    }

    fn begin(&self, what: &str) -> Box<dyn Task> {
        let what = shown::line(what);
        match self {
            Shown::Bars(all) => Box::new(Bar::begin(&what, all)),
            Shown::Lines(lines) => Box::new(lines.begin(&what)),
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
