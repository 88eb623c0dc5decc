//! What was aimed at and what was seen.

use crate::numbers::Spread;
use std::fmt;

/// The targets of a run, and whether they were met.
#[derive(Debug, Default)]
pub struct Targets(Vec<Target>);

#[derive(Debug)]
struct Target {
    what: String,
    seen: Spread,
    bound: Bound,
}

#[derive(Clone, Copy, Debug)]
pub enum Bound {
    AtMost(f64),
    AtLeast(f64),
    Below(f64),
}

impl Targets {
    /// Judged by the median.
    pub fn expect(&mut self, what: String, seen: Spread, bound: Bound) {
        self.0.push(Target { what, seen, bound });
    }

    pub fn add(&mut self, more: Targets) {
        self.0.extend(more.0);
    }

    pub fn missed(&self) -> bool {
        self.0.iter().any(|target| !target.met())
    }
}

impl Target {
    fn met(&self) -> bool {
        let seen = self.seen.median;
        match self.bound {
            Bound::AtMost(bound) => seen <= bound,
            Bound::AtLeast(bound) => seen >= bound,
            Bound::Below(bound) => seen < bound,
        }
    }
}

impl fmt::Display for Targets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Targets: median over the rounds (its quartiles)")?;
        for target in &self.0 {
            let Target { what, seen, bound } = target;
            let verdict = if target.met() { "met" } else { "MISSED" };
            writeln!(f, "  {verdict:<6} {seen:<20} {bound:<10} {what}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Bound::AtMost(bound) => format!("<= {bound:.2}"),
            Bound::AtLeast(bound) => format!(">= {bound:.2}"),
            Bound::Below(bound) => format!("<  {bound:.2}"),
        };
        f.pad(&text)
    }
}
