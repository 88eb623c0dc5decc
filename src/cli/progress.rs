//! Progress for people: bars on a terminal, plain lines elsewhere. All of it
//! goes to stderr, so that stdout holds the result alone.

use super::exit::Failure;
use super::output;
use crate::progress::{Progress, Task};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::fmt::Display;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub fn for_this_output() -> Shown {
    match std::io::stderr().is_terminal() {
        true => Shown::Bars(MultiProgress::new()),
        false => Shown::Lines,
    }
}

/// Many things can be under way: each has a bar of its own, or lines that
/// start with its name.
pub enum Shown {
    Bars(MultiProgress),
    Lines,
}

impl Shown {
    /// Prints a result, with the bars out of its way.
    pub fn print(&self, text: impl Display) -> Result<(), Failure> {
        match self {
            Shown::Bars(all) => all.suspend(|| output::print(text)),
            Shown::Lines => output::print(text),
        }
    }
}

/// Colour only where somebody looks and nobody objects.
pub fn wants_color() -> bool {
    let objected = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !objected
}

/// Columns for text: as many as the terminal has, and no limit where there is none.
/// `COLUMNS` says otherwise.
pub fn width() -> usize {
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
        match self {
            Shown::Bars(all) => drop(all.println(line)),
            Shown::Lines => output::complain(line),
        }
    }

    fn begin(&self, what: &str) -> Box<dyn Task> {
        match self {
            Shown::Bars(all) => Box::new(Bar::begin(what, all)),
            Shown::Lines => Box::new(Line::begin(what)),
        }
    }
}

struct Bar {
    what: String,
    bar: ProgressBar,
    all: MultiProgress,
    started: Instant,
}

impl Bar {
    fn begin(what: &str, all: &MultiProgress) -> Bar {
        let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed:>4}  {wide_msg}");
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let bar = all.add(bar);
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Bar {
            what: what.to_owned(),
            bar,
            all: all.clone(),
            started: Instant::now(),
        }
    }
}

impl Task for Bar {
    fn detail(&self, detail: &str) {
        self.bar.set_message(detail.to_owned());
    }

    fn reached(&self, done: u64, of: u64, detail: &str) {
        // The spinner has no length until somebody can say how much there is.
        if self.bar.length() != Some(of) {
            let template = "{spinner} {prefix} {elapsed:>4} [{bar:30}] {percent:>3} %  {wide_msg}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.bar.set_style(style);
            }
            self.bar.set_length(of);
        }
        self.bar.set_position(done);
        self.detail(detail);
    }

    fn finish(&self, result: &str) {
        self.bar.finish_and_clear();
        let _ = self.all.println(ended(&self.what, result, self.started));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

struct Line {
    what: String,
    started: Instant,
}

impl Line {
    fn begin(what: &str) -> Line {
        output::complain(format_args!("{what} …"));
        Line {
            what: what.to_owned(),
            started: Instant::now(),
        }
    }
}

impl Task for Line {
    /// Details are for watching; in a log they would only be noise.
    fn detail(&self, _detail: &str) {}

    fn finish(&self, result: &str) {
        output::complain(ended(&self.what, result, self.started));
    }
}

fn ended(what: &str, result: &str, started: Instant) -> String {
    format!(
        "{what}: {result} ({:.1} s)",
        started.elapsed().as_secs_f64()
    )
}
