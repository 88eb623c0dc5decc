use std::time::{Duration, Instant};

/// What a task does or awaits at the moment, and since when.
pub struct TaskDetail {
    detail: String,
    since: Instant,
}

impl TaskDetail {
    pub fn nothing_yet() -> TaskDetail {
        TaskDetail {
            detail: String::new(),
            since: Instant::now(),
        }
    }

    /// Sets the detail. The time starts again only if the detail is a different one.
    pub fn set(&mut self, detail: &str) {
        if self.detail != detail {
            self.detail = detail.to_owned();
            self.since = Instant::now();
        }
    }

    pub fn detail(&self) -> &str {
        &self.detail
    }

    pub fn lasted(&self) -> Duration {
        self.since.elapsed()
    }
}
