//! Helpers for tests: the lines that are printed while runs go on, and a scenario to run.

use super::*;
use crate::progress::Task;
use crate::scenario::{Settings, Surroundings};
use std::sync::Mutex;

#[derive(Default)]
pub struct SaidLines(Mutex<Vec<String>>);

impl SaidLines {
    pub fn lines(&self) -> Vec<String> {
        self.0.lock().expect("nobody panics with it").clone()
    }
}

impl Progress for SaidLines {
    fn say(&self, line: &str) {
        let mut lines = self.0.lock().expect("nobody panics with it");
        lines.push(line.to_owned());
    }

    fn begin(&self, _: &str) -> Box<dyn Task> {
        unreachable!("nothing takes a while here")
    }
}

pub fn pause_scenario() -> Scenario {
    let text = include_str!("../../scenarios/pause-gt-ttl.yml");
    let (settings, around) = (Settings::default(), Surroundings::Recorded);
    Scenario::parse(Path::new("s.yml"), text, &settings, &around).unwrap()
}
