//! A bar on a terminal: what is in progress, for how long, and what it awaits since when.

use super::awaited::TaskDetail;
use super::*;
use crate::progress::Task;
use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use parking_lot::Mutex;
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The shortest wait that is shown with its duration.
const WORTH_A_NUMBER: Duration = Duration::from_secs(2);

pub struct Bar {
    what: String,
    bar: ProgressBar,
    all: MultiProgress,
    started: Instant,
    awaited: Arc<Mutex<TaskDetail>>,
}

impl Bar {
    pub fn begin(what: &str, all: &MultiProgress) -> Bar {
        let awaited = Arc::new(Mutex::new(TaskDetail::nothing_yet()));
        let bar = ProgressBar::new_spinner();
        let bar = all.add(bar);
        let task = Bar {
            what: what.to_owned(),
            bar,
            all: all.clone(),
            started: Instant::now(),
            awaited,
        };
        task.set_style("{spinner} {prefix} {elapsed:>4}  {wide_msg}{since:>9}");
        task.bar.set_prefix(what.to_owned());
        task.bar.enable_steady_tick(Duration::from_millis(100));
        task
    }

    fn set_style(&self, template: &str) {
        let awaited = Arc::clone(&self.awaited);
        let since = move |_: &ProgressState, text: &mut dyn Write| {
            let lasted = awaited.lock().lasted();
            if lasted >= WORTH_A_NUMBER {
                let _ = write!(text, "for {} s", lasted.as_secs());
            }
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style.with_key("since", since));
        }
    }
}

impl Task for Bar {
    fn detail(&self, detail: &str) {
        let detail = shown::line(detail);
        let mut awaited = self.awaited.lock();
        awaited.set(&detail);
        drop(awaited);
        self.bar.set_message(detail.into_owned());
    }

    fn reached(&self, done: u64, of: u64, detail: &str) {
        // The spinner has no length until the task knows how much there is to do.
        if self.bar.length() != Some(of) {
            self.set_style("{spinner} {prefix} {elapsed:>4} [{bar:30}] {percent:>3} %  {wide_msg}");
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
