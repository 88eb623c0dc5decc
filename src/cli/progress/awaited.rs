use std::time::{Duration, Instant};

/// What a task does or awaits just now, and since when.
pub struct Awaited {
    detail: String,
    since: Instant,
}

impl Awaited {
    pub fn nothing_yet() -> Awaited {
        Awaited {
            detail: String::new(),
            since: Instant::now(),
        }
    }

    /// The same once more goes on; something else begins now.
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
