//! The smallest case that shows a break: smaller ones are played, as many at a time as there are
//! jobs, and the first that still shows it is taken, whoever was quicker.

use super::shrink::{candidates, shrink};
use super::subject::entries_of;
use super::*;
use std::cell::Cell;

/// So many simpler cases are tried.
const MOST_CANDIDATES: usize = 1000;
/// In real time.
const MOST_REAL_CANDIDATES: usize = 40;
/// So many variations without an entry are drawn, each with so many changes at most.
const REDRAWN: u32 = 200;
const MOST_CHANGES_REDRAWN: u32 = 4;
/// Plays with the same seed that tell how often it comes. In a simulation all of them are the same.
pub const PLAYS: u32 = 3;

impl Search<'_> {
    /// Returns the smallest case that shows it, and how many plays of it do.
    pub(super) fn smallest(
        &self,
        number: u64,
        case: &Node,
        kind: ViolationKind,
        until: Option<Instant>,
    ) -> Option<(Node, u32)> {
        let own = 1 + number % 8;
        let is_shown = |it: &&Shown| it.kinds.contains(&kind);
        // Once it is shown by what a run would not doubt, nothing else will do.
        let is_certain = Cell::new(self.shown(case, own)?.doubt.is_none());
        let shows = |played: &Option<Shown>| {
            played.as_ref().filter(is_shown).is_some_and(|it| {
                is_certain.set(is_certain.get() || it.doubt.is_none());
                it.doubt.is_none() || !is_certain.get()
            })
        };
        let is_late = || until.is_some_and(|until| Instant::now() >= until);
        let is_wanted = || !is_late() && !self.lab.interrupt.is_cancelled();
        let count = |played: &[Option<Shown>]| played.iter().filter(|it| shows(it)).count();
        let small = if self.lab.runtime.simulates() {
            // All plays of a case are the same.
            let first = |cases: &[Node]| self.first(cases, (own, 1), is_wanted, |it| count(it) > 0);
            let without_doubt = |case: Node| {
                let mut all = candidates(&case);
                let is_certain_here = |played: &[Option<Shown>]| {
                    let mut shown = played.iter().flatten().filter(is_shown);
                    shown.any(|it| it.doubt.is_none())
                };
                match self.first(&all, (own, 1), is_wanted, is_certain_here) {
                    Some(index) => {
                        is_certain.set(true);
                        all.swap_remove(index)
                    }
                    None => case,
                }
            };
            let mut small = case.clone();
            if !is_certain.get() {
                small = without_doubt(small);
            }
            small = shrink(&small, MOST_CANDIDATES, first);
            if !is_certain.get() {
                small = shrink(&without_doubt(small), MOST_CANDIDATES, first);
            }
            self.with_fewer_entries(number, small, &first)
        } else {
            let mostly = |it: &[Option<Shown>]| 2 * count(it) > it.len();
            let first = |cases: &[Node]| self.first(cases, (own, PLAYS), is_wanted, mostly);
            match first(std::slice::from_ref(case)) {
                Some(_) => shrink(case, MOST_REAL_CANDIDATES, first),
                // What does not come again is kept as it is.
                None => case.clone(),
            }
        };
        let played = self.played(std::slice::from_ref(&small), own, PLAYS);
        Some((small, count(&played[0]) as u32))
    }

    /// Looks beyond the smallest case for one whose timeline is shorter still: what an entry does
    /// can often be had by another start, more rounds or longer work. So variations of the case
    /// without an entry are drawn, and one that shows the break is made small in its turn.
    fn with_fewer_entries(
        &self,
        number: u64,
        mut small: Node,
        first: &impl Fn(&[Node]) -> Option<usize>,
    ) -> Node {
        let mut rng = self.chance(&format!("fewer entries {number}"));
        while let Some(fewer) = entries_of(&small).checked_sub(1) {
            let facts = self.facts_of(&small);
            let mut variation = || {
                let entry = Turn::Item(rng.usize(0..=fewer));
                let mut case = small.without(&[Turn::Key("timeline".into()), entry])?;
                self.vary(&mut case, &facts, &mut rng, MOST_CHANGES_REDRAWN);
                let case = self.subject.settle(&case);
                (entries_of(&case) <= fewer && self.valid(&case).is_ok()).then_some(case)
            };
            let drawn = (0..REDRAWN).filter_map(|_| variation());
            let mut drawn: Vec<Node> = drawn.collect();
            let Some(index) = first(&drawn) else {
                break;
            };
            small = shrink(&drawn.swap_remove(index), MOST_CANDIDATES, first);
        }
        small
    }

    /// Plays some cases, as many at a time as there are jobs; returns the first that shows it, by
    /// so many plays of each.
    fn first(
        &self,
        cases: &[Node],
        (seed, plays): (u64, u32),
        is_wanted: impl Fn() -> bool,
        shows: impl Fn(&[Option<Shown>]) -> bool,
    ) -> Option<usize> {
        let width = (self.lab.options.jobs / plays).max(1) as usize;
        for (at, some) in cases.chunks(width).enumerate() {
            if !is_wanted() {
                return None;
            }
            let played = self.played(some, seed, plays);
            if let Some(index) = played.iter().position(|it| shows(it)) {
                return Some(at * width + index);
            }
        }
        None
    }

    /// Plays each of these cases so often, all at the same time.
    fn played(&self, cases: &[Node], seed: u64, plays: u32) -> Vec<Vec<Option<Shown>>> {
        if let ([case], 1) = (cases, plays) {
            return vec![vec![self.shown(case, seed)]];
        }
        std::thread::scope(|scope| {
            let play = |case| (0..plays).map(move |_| scope.spawn(move || self.shown(case, seed)));
            let playing = cases.iter().map(|case| play(case).collect::<Vec<_>>());
            let playing: Vec<_> = playing.collect();
            let played = playing.into_iter().map(|plays| {
                let plays = plays.into_iter();
                plays.map(|it| it.join().ok().flatten()).collect()
            });
            played.collect()
        })
    }

    fn shown(&self, case: &Node, seed: u64) -> Option<Shown> {
        let scenario = self.valid(case).ok()?;
        let once = self.play(&scenario, seed).ok()?;
        Some(Shown::of(&once))
    }
}
