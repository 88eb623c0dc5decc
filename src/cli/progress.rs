//! Progress for people: bars on a terminal, plain lines elsewhere. All of it
//! goes to stderr, so that stdout holds the result alone.

use super::output;
use crate::progress::{Progress, Task};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

pub fn for_this_output() -> Box<dyn Progress> {
    match std::io::stderr().is_terminal() {
        true => Box::new(Bars::default()),
        false => Box::new(Lines),
    }
}

/// Colour only where somebody looks and nobody objects.
pub fn wants_color() -> bool {
    let objected = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stdout().is_terminal() && !objected
}

#[derive(Default)]
struct Bars {
    all: MultiProgress,
}

struct Bar {
    what: String,
    bar: ProgressBar,
    all: MultiProgress,
    started: Instant,
}

impl Progress for Bars {
    fn say(&self, line: &str) {
        let _ = self.all.println(line);
    }

    fn begin(&self, what: &str) -> Box<dyn Task> {
        let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed:>4}  {wide_msg}");
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = style {
            bar.set_style(style);
        }
        let bar = self.all.add(bar);
        bar.set_prefix(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        Box::new(Bar {
            what: what.to_owned(),
            bar,
            all: self.all.clone(),
            started: Instant::now(),
        })
    }
}

impl Task for Bar {
    fn detail(&self, detail: &str) {
        self.bar.set_message(detail.to_owned());
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

struct Lines;

struct Line {
    what: String,
    started: Instant,
}

impl Progress for Lines {
    fn say(&self, line: &str) {
        output::complain(line);
    }

    fn begin(&self, what: &str) -> Box<dyn Task> {
        output::complain(format_args!("{what} …"));
        Box::new(Line {
            what: what.to_owned(),
            started: Instant::now(),
        })
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
