//! Lock services beside each other, if a scenario runs its cases on several of them. Everything is
//! read off the results of these cases: what a case says depends on its load, its faults and its
//! fence, and not on its name.

mod tables;
#[cfg(test)]
mod tests;

use super::*;
use schemars::JsonSchema;
use serde::Deserialize;
pub use tables::{markdown, tables, text};

/// One service. What was not measured, or what came out inconclusive, is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServiceFigures {
    pub service: String,
    pub uncontended: Option<UncontendedFigures>,
    /// By number of contenders for one key.
    pub hot_key: BTreeMap<u32, HotKeyFigures>,
    /// After the holder was killed.
    pub blocked: Option<BlockedFigures>,
    pub paused_unfenced: Option<PausedFigures>,
    pub paused_fenced: Option<PausedFigures>,
    /// Whether somebody else was granted the lock of a live holder because the clocks of the
    /// servers were set.
    pub clock_breaks_exclusion: Option<bool>,
    /// Where the tokens come from.
    pub tokens: String,
    /// Whether they only grew, in every case that tested it.
    pub tokens_only_grew: Option<bool>,
}

/// Acquire and release together, and the two cheapest writes of the service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncontendedFigures {
    pub p50_us: u64,
    pub p99_us: u64,
    pub floor: String,
    pub floor_p50_us: u64,
    pub floor_p99_us: u64,
    /// Of the medians.
    pub ratio: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HotKeyFigures {
    pub hand_offs_per_s: f64,
    /// The share of grants to somebody while another waited who had come earlier.
    pub out_of_order: f64,
    /// Jain's index over the grants of each contender.
    pub jain: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockedFigures {
    pub for_ms: u64,
    pub ttl_ms: u64,
}

/// The holder was stopped for longer than its TTL, directly before it wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PausedFigures {
    pub violations: u64,
    /// Writes of the holder that the resource refused.
    pub refused: u64,
    /// Whether somebody else was granted the lock meanwhile.
    pub another_was_granted: bool,
}

/// Returns the services in the order of their cases; none for a scenario that does not compare.
pub fn of(run: &RunRecord) -> Vec<ServiceFigures> {
    let mut all: Vec<ServiceFigures> = Vec::new();
    for case in &run.cases {
        let Some(service) = &case.service else {
            continue;
        };
        let known = all.iter().position(|one| *service.name == *one.service);
        let place = known.unwrap_or_else(|| {
            all.push(ServiceFigures {
                service: service.name.to_string(),
                tokens: service.tokens.clone(),
                ..ServiceFigures::default()
            });
            all.len() - 1
        });
        all[place].add(case, service);
    }
    all
}

impl ServiceFigures {
    fn add(&mut self, case: &CaseResult, service: &ServiceRun) {
        let judgement = &case.judgement;
        match judgement.promises.get(&Promise::Tokens) {
            Some(Kept::Kept) => _ = self.tokens_only_grew.get_or_insert(true),
            Some(Kept::Broken | Kept::Excused) => self.tokens_only_grew = Some(false),
            _ => {}
        }
        if case.verdict.outcome == Outcome::Inconclusive {
            return;
        }
        if let Some(load) = &case.notes.load {
            if let Some(alone) = &load.uncontended {
                self.uncontended = Some(UncontendedFigures::of(alone));
            }
            let steps = load.steps.iter().filter(|step| step.acquisitions > 0);
            let steps = steps.map(|step| (step.contenders, HotKeyFigures::of(step)));
            self.hot_key = steps.collect();
        }
        let has = |kind| case.faults.iter().any(|row| row.fault == kind);
        if has(FaultKind::Kill) {
            let blocked = judgement.measures.get(&Measure::Blocked);
            self.blocked = blocked.map(|blocked| BlockedFigures {
                for_ms: blocked.as_millis() as u64,
                ttl_ms: service.ttl_ms,
            });
        }
        if has(FaultKind::Pause) {
            let paused = Some(PausedFigures::of(judgement));
            match case.fence {
                Fence::Off => self.paused_unfenced = paused,
                Fence::On => self.paused_fenced = paused,
            }
        }
        if has(FaultKind::Skew) {
            self.clock_breaks_exclusion = Some(judgement.counts.definite_overlaps > 0);
        }
    }
}

impl UncontendedFigures {
    fn of(alone: &Uncontended) -> UncontendedFigures {
        UncontendedFigures {
            p50_us: alone.lock.p50_us,
            p99_us: alone.lock.p99_us,
            floor: alone.writes.clone(),
            floor_p50_us: alone.floor.p50_us,
            floor_p99_us: alone.floor.p99_us,
            ratio: alone.ratio(),
        }
    }
}

impl HotKeyFigures {
    fn of(step: &ContendStep) -> HotKeyFigures {
        HotKeyFigures {
            hand_offs_per_s: step.hand_offs_per_s,
            out_of_order: step.fairness.out_of_order,
            jain: step.fairness.jain,
        }
    }
}

impl PausedFigures {
    fn of(judgement: &Judgement) -> PausedFigures {
        PausedFigures {
            violations: judgement.violations.len() as u64,
            refused: judgement.counts.stale_rejections,
            another_was_granted: judgement.counts.definite_overlaps > 0,
        }
    }
}
