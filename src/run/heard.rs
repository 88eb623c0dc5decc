//! For tests: what is said while runs go on.

use crate::progress::{Progress, Task};
use std::sync::Mutex;

#[derive(Default)]
pub struct Heard(Mutex<Vec<String>>);

impl Heard {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().expect("nobody panics with it").clone()
    }
}

impl Progress for Heard {
    fn say(&self, line: &str) {
        let mut lines = self.0.lock().expect("nobody panics with it");
        lines.push(line.to_owned());
    }

    fn begin(&self, _: &str) -> Box<dyn Task> {
        unreachable!("nothing takes a while here")
    }
}
