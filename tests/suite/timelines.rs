//! Faults in scenarios, from the file to the verdict.

mod clocks;
mod leftovers;
mod links;
mod meddling;
mod processes;
mod steps;

use crate::support::*;
use serde_json::Value;
use std::path::PathBuf;

const NAME: &str = "tried";

/// A scenario of a test's own in a home of its own.
struct Tried {
    home: Home,
    results: PathBuf,
}

impl Tried {
    /// `body` is everything from `workers` on.
    fn new(test: &str, topology: &str, lock: &str, body: &str) -> Tried {
        let home = Home::new();
        let head = format!("name: {NAME}\nabout: A test.\ntopology: {topology}\nlock: {lock}\n");
        home.write(&format!("scenarios/{NAME}.yml"), head + body);
        let results = fresh_folder(&format!("tried-{test}"));
        Tried { home, results }
    }

    fn arguments<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        let results = self.results.to_str().expect("a plain path");
        let run = [
            "run",
            NAME,
            "--home",
            self.home.path(),
            "--results",
            results,
        ];
        [&run[..], more].concat()
    }

    fn run(&self, more: &[&str]) -> Ended {
        fencepost(&self.arguments(more))
    }

    fn case(&self, name: &str) -> PathBuf {
        self.results.join(NAME).join("latest").join(name)
    }

    fn faults(&self, case: &str) -> Vec<Value> {
        rows(&self.case(case).join("faults.jsonl"))
    }

    /// What each fault came to, in the order of their requests.
    fn came_to(&self, case: &str) -> Vec<String> {
        let result = json(&self.case("").join("result.json"));
        let faults = result["stable"]["cases"][case]["faults"].as_array();
        let words = |fault: &Value| {
            let word = |name: &str| fault[name].as_str().unwrap_or("?").to_owned();
            format!("{} {} {}", word("fault"), word("target"), word("came_to"))
        };
        faults.expect("faults").iter().map(words).collect()
    }
}
