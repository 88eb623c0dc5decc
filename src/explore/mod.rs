//! A search in place of a script: draws variations of a case, plays them, and judges each by the
//! promises alone. What breaks one is made small and written as a scenario.
//!
//! Tries are drawn in batches. A try depends on the seed, on its number and on what earlier
//! batches have shown, and never on who plays it or how fast.

mod draw;
mod facts;
mod finding;
mod ground;
mod shown;
mod shrink;
mod smaller;
mod state;
mod subject;

pub use finding::Finding;
pub use state::{Explored, State};
pub use subject::Subject;

use crate::model::{
    FaultKind, FaultRow, FaultStage, Fence, Gate, ViolationKind, format_duration, parse_duration,
};
use crate::progress::{Progress, Quiet};
use crate::run::{
    Lab, Once, RunError, RunOptions, RunResult, WorkerLimits, play_once, simulate_once,
};
use crate::scenario::{Scenario, Settings, Surroundings};
use crate::services::Backend;
use crate::yaml::{Node, Turn, parse};
use draw::Draw;
use facts::Facts;
use fastrand::Rng;
use ground::Ground;
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use shown::Shown;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// So many tries are drawn from the same ground. The number is a part of what a seed means.
const BATCH: u64 = 32;
/// A variation that does not fit together is drawn again, so often.
const DRAWS: u32 = 40;
/// A search is saved this often.
const SAVE_EVERY: Duration = Duration::from_secs(5);

pub struct Search<'a> {
    pub lab: &'a Lab<'a>,
    pub around: &'a Surroundings,
    pub subject: &'a Subject,
    /// The runtime of this program, for plays on real servers.
    pub handle: Handle,
    /// One finding is enough.
    pub until_found: bool,
    /// Nothing is drawn that the worker cannot do.
    pub limits: WorkerLimits,
}

#[derive(Clone, Copy, Debug)]
pub enum Budget {
    Tries(u64),
    For(Duration),
}

/// What became of a try.
struct Tried {
    number: u64,
    case: Node,
    played: RunResult<Shown>,
}

impl Search<'_> {
    /// Returns why nothing can be searched here, if that is so.
    pub fn impossible(&self) -> Option<String> {
        let mut cases = self.subject.cases.iter();
        cases.find_map(|case| {
            let scenario = match self.valid(case) {
                Ok(scenario) => scenario,
                Err(reason) => return Some(reason),
            };
            let case = &scenario.cases[0];
            if case.setup.load.is_some() {
                return Some(
                    "a load has no timeline to vary; name a scenario of faults".to_owned(),
                );
            }
            if case.setup.attach.is_some() {
                let why = "nobody may search on servers that are there already";
                return Some(format!("{why}; name a topology of your own"));
            }
            self.lab.lacking(case)
        })
    }

    /// Returns a file for each case of the subject.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let cases = self.subject.cases.iter();
        cases.filter_map(|case| self.valid(case).ok()).collect()
    }

    /// Searches until the budget is spent, or somebody interrupts; the state has what was found.
    pub fn run(&self, state: &mut State, budget: Budget) -> RunResult {
        let ended = self.search(state, budget);
        state.save(self.lab.progress);
        ended
    }

    fn search(&self, state: &mut State, budget: Budget) -> RunResult {
        let (started, mut saved) = (Instant::now(), Instant::now());
        let first = state.explored.tries;
        let task = self
            .lab
            .progress
            .begin(&format!("explore {}", self.subject.name));
        loop {
            let from = state.next;
            let batch = self.batch();
            let mut to = from - from % batch + batch;
            let until = match budget {
                Budget::Tries(tries) => {
                    to = to.min(from + tries.saturating_sub(state.explored.tries - first));
                    None
                }
                Budget::For(length) => Some(started + length),
            };
            let is_late = until.is_some_and(|until| Instant::now() >= until);
            let mut findings = state.explored.findings.iter();
            let is_found = findings.any(|it| it.doubt.is_none());
            let is_over = is_late || self.until_found && is_found;
            if is_over || from >= to || self.lab.interrupt.is_cancelled() {
                break;
            }
            let tried = self.play_batch(from..to, &state.ground, until);
            self.take(state, tried, until)?;
            task.detail(&state.explored.progress(first, started.elapsed()));
            if saved.elapsed() > SAVE_EVERY {
                state.save(self.lab.progress);
                saved = Instant::now();
            }
        }
        task.finish(&state.explored.progress(first, started.elapsed()));
        Ok(())
    }

    /// Returns how many tries are played before anybody looks at them. On real servers none
    /// depends on another.
    fn batch(&self) -> u64 {
        match self.lab.runtime.simulates() {
            true => BATCH,
            false => 4 * u64::from(self.lab.options.jobs),
        }
    }

    /// Plays these tries, as many at a time as there are jobs. In real time, those that have not
    /// begun when the time is over do not begin.
    fn play_batch(
        &self,
        numbers: std::ops::Range<u64>,
        ground: &Ground,
        until: Option<Instant>,
    ) -> Vec<Tried> {
        let (next, done) = (AtomicU64::new(numbers.start), Mutex::new(Vec::new()));
        let is_simulated = self.lab.runtime.simulates();
        let is_over = || {
            let late = until.is_some_and(|until| Instant::now() >= until);
            !is_simulated && (late || self.lab.interrupt.is_cancelled())
        };
        let work = || {
            while !is_over() {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= numbers.end {
                    return;
                }
                let tried = self.try_one(number, ground);
                done.lock().push(tried);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..self.lab.options.jobs {
                scope.spawn(work);
            }
        });
        let mut tried = done.into_inner();
        tried.sort_by_key(|tried| tried.number);
        tried
    }

    fn try_one(&self, number: u64, ground: &Ground) -> Tried {
        let (scenario, case) = self.draw(number, ground);
        let seed = 1 + number % 8;
        let played = self.play(&scenario, seed).map(|once| Shown::of(&once));
        Tried {
            number,
            case,
            played,
        }
    }

    /// Draws the case of a try: from a case of the subject, or from one that led to new ground.
    fn draw(&self, number: u64, ground: &Ground) -> (Scenario, Node) {
        let mut rng = self.chance(&number.to_string());
        let cases = &self.subject.cases;
        let (parent, most) = match ground.cases.is_empty() || rng.bool() {
            true => (&cases[rng.usize(0..cases.len())], 8),
            false => (&ground.cases[rng.usize(0..ground.cases.len())], 3),
        };
        let facts = self.facts_of(parent);
        for _ in 0..DRAWS {
            let mut case = parent.clone();
            self.vary(&mut case, &facts, &mut rng, most);
            let case = self.subject.settle(&case);
            if let Ok(scenario) = self.valid(&case)
                && self.lab.lacking(&scenario.cases[0]).is_none()
                && self.limits.allow(self.lab, &scenario.cases[0])
            {
                return (scenario, case);
            }
        }
        // It was valid before.
        let scenario = self.valid(parent).expect("a case that was played before");
        (scenario, parent.clone())
    }

    fn facts_of(&self, case: &Node) -> Facts {
        Facts::of(case, self.around, self.lab)
    }

    /// Makes one change to a case, or up to `most`.
    fn vary(&self, case: &mut Node, facts: &Facts, rng: &mut Rng, most: u32) {
        for _ in 0..rng.u32(1..=most) {
            Draw { facts, rng }.change(case);
        }
    }

    /// Returns the chance of one purpose, which is the same in every search with this seed.
    fn chance(&self, purpose: &str) -> Rng {
        let hash = Sha256::digest(format!("{} {purpose}", self.lab.options.seed));
        let bytes = hash.iter().take(8);
        Rng::with_seed(bytes.fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
    }

    /// Returns a file of this case, or what is wrong with it.
    fn valid(&self, case: &Node) -> Result<Scenario, String> {
        let file = subject::file_of("explored", "a variation", case, &[]);
        let (path, settings) = (Path::new("explored.yml"), Settings::default());
        let read = Scenario::of_tree(path, &file, &settings, self.around);
        read.map_err(|error| error.to_string())
    }

    fn play(&self, scenario: &Scenario, seed: u64) -> RunResult<Once> {
        let options = RunOptions {
            seed,
            ..self.lab.options.clone()
        };
        let lab = Lab {
            options: &options,
            progress: &Quiet,
            ..*self.lab
        };
        match lab.runtime.simulates() {
            true => simulate_once(&lab, &scenario.cases[0]),
            false => self
                .handle
                .block_on(play_once(&lab, scenario, &scenario.cases[0])),
        }
    }

    /// Takes over what tries have shown, in the order of their numbers. Nothing is drawn from a
    /// batch before all of it was played, by this search or by one that went before.
    fn take(&self, state: &mut State, batch: Vec<Tried>, until: Option<Instant>) -> RunResult {
        let is_simulated = self.lab.runtime.simulates();
        let count = batch.len();
        let mut failed = None;
        for tried in batch {
            let shown = match tried.played {
                Err(RunError::Interrupted) => break,
                Err(error) => {
                    state.explored.unknown(&error.to_string());
                    failed = failed
                        .map(|(times, it)| (times + 1, it))
                        .or(Some((1, error)));
                    state.next = tried.number + 1;
                    continue;
                }
                Ok(shown) => shown,
            };
            state.next = tried.number + 1;
            state.explored.add(&shown);
            if !shown.kinds.is_empty() {
                self.found(state, tried.number, &tried.case, &shown, until);
            }
            if is_simulated {
                state.of_this_batch.push((shown.orders, tried.case));
            }
        }
        if state.next.is_multiple_of(BATCH) {
            for (orders, case) in std::mem::take(&mut state.of_this_batch) {
                state.ground.add(&orders, &case);
            }
            state.explored.orders = state.ground.orders();
        }
        match failed {
            Some((times, error)) if times == count && state.explored.is_hopeless() => Err(error),
            _ => Ok(()),
        }
    }
}
