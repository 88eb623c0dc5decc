//! What a person sees while something takes its time. The rooms that take
//! time know only this trait; how it looks is up to the command line.

pub trait Progress: Send + Sync {
    /// One line that stays.
    fn say(&self, line: &str);
    /// Something that takes a while; it ends when the task is finished or dropped.
    fn begin(&self, what: &str) -> Box<dyn Task>;
}

pub trait Task: Send + Sync {
    /// What is being done or awaited just now.
    fn detail(&self, detail: &str);
    /// So much of it is done, where that can be counted.
    fn reached(&self, done: u64, of: u64, detail: &str) {
        let _ = (done, of);
        self.detail(detail);
    }
    /// It is over; `result` says how it ended.
    fn finish(&self, result: &str);
}

/// Shows nothing: something else tells of all that goes on.
pub struct Quiet;

impl Progress for Quiet {
    fn say(&self, _: &str) {}

    fn begin(&self, _: &str) -> Box<dyn Task> {
        Box::new(Quiet)
    }
}

impl Task for Quiet {
    fn detail(&self, _: &str) {}

    fn finish(&self, _: &str) {}
}
