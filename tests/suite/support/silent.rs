use fencepost::progress::{Progress, Task};

/// Progress that is not shown, because nobody watches a test.
pub struct Silent;

impl Progress for Silent {
    fn say(&self, _line: &str) {}

    fn begin(&self, _what: &str) -> Box<dyn Task> {
        Box::new(Silent)
    }
}

impl Task for Silent {
    fn detail(&self, _detail: &str) {}

    fn finish(&self, _result: &str) {}
}
