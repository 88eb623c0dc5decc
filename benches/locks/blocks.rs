//! Candidates that take turns: each has a block of pairs (acquire, release) in
//! every round, so that whatever else the machine does meets all of them.

use crate::Trouble;
use crate::numbers::{Spread, percentile};
use crate::peers::Lock;
use std::time::{Duration, Instant};

/// A block also ends after this long, for candidates that are very slow.
const BLOCK_LIMIT: Duration = Duration::from_secs(2);
/// Of each block, not counted: connections open, caches and cores warm up.
const WARM_UP_PAIRS: usize = 10;

pub struct Candidate {
    pub name: String,
    lock: Box<dyn Lock>,
    last_token: u64,
    /// One number for each round.
    pub p50_us: Vec<f64>,
    pairs_us: Vec<f64>,
}

/// Rotates the order as well: nobody always follows the same one.
pub async fn take_turns(
    candidates: &mut [Candidate],
    rounds: usize,
    pairs: usize,
) -> Result<(), Trouble> {
    for round in 0..rounds {
        for turn in 0..candidates.len() {
            let number = (round + turn) % candidates.len();
            candidates[number].block(pairs).await?;
        }
    }
    Ok(())
}

/// The first candidate is the floor.
pub fn print(title: &str, candidates: &[Candidate]) {
    println!("\n{title}");
    println!("  p50 us   p99 us    pairs   x floor (quartiles)    candidate");
    for candidate in candidates {
        let Candidate { name, pairs_us, .. } = candidate;
        let (p50, p99) = (percentile(pairs_us, 0.5), percentile(pairs_us, 0.99));
        let ratio = candidate.ratio_to(&candidates[0]);
        println!(
            "{p50:>8.0} {p99:>8.0} {:>8}   {ratio:<22} {name}",
            pairs_us.len()
        );
    }
}

impl Candidate {
    pub fn new(name: impl Into<String>, lock: Box<dyn Lock>) -> Candidate {
        Candidate {
            name: name.into(),
            lock,
            last_token: 0,
            p50_us: Vec::new(),
            pairs_us: Vec::new(),
        }
    }

    pub fn ratio_to(&self, other: &Candidate) -> Spread {
        Spread::of_ratios(&self.p50_us, &other.p50_us)
    }

    pub async fn block(&mut self, pairs: usize) -> Result<(), Trouble> {
        let measured = self.measure(pairs).await;
        measured.map_err(|trouble| format!("{}: {trouble}", self.name).into())
    }

    async fn measure(&mut self, pairs: usize) -> Result<(), Trouble> {
        let start = Instant::now();
        for _ in 0..WARM_UP_PAIRS {
            self.pair().await?;
            if start.elapsed() > BLOCK_LIMIT / 2 {
                break;
            }
        }
        let mut block_us = Vec::with_capacity(pairs);
        while block_us.len() < pairs && (block_us.is_empty() || start.elapsed() < BLOCK_LIMIT) {
            block_us.push(self.pair().await?.as_secs_f64() * 1e6);
        }
        self.p50_us.push(percentile(&block_us, 0.5));
        self.pairs_us.extend(block_us);
        Ok(())
    }

    async fn pair(&mut self) -> Result<Duration, Trouble> {
        let start = Instant::now();
        let token = self.lock.acquire().await?;
        self.lock.release().await?;
        let took = start.elapsed();
        if let Some(token) = token {
            let last_token = std::mem::replace(&mut self.last_token, token);
            if token <= last_token {
                return Err(format!("token {token} after {last_token}").into());
            }
        }
        Ok(took)
    }
}
