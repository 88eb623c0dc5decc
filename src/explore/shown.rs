//! What a play has shown: what was broken, and whether it says anything at all.

use super::ground::{bit, orders};
use super::*;
use crate::model::{DoubtReason, FaultDoubt, UnprovenReason};

/// What a play has shown.
pub(super) struct Shown {
    /// The breaks that are worth finding, and all of them.
    pub kinds: Vec<ViolationKind>,
    pub all_kinds: Vec<ViolationKind>,
    /// Why a run of it would be inconclusive.
    pub doubt: Option<String>,
    /// Why it says nothing at all.
    pub silent: Option<String>,
    pub faults: u64,
    pub orders: Vec<u16>,
}

impl Shown {
    pub fn of(once: &Once) -> Shown {
        let fence = once.record.plan.fence;
        let all_kinds = once.judgement.violations.iter().map(|it| it.kind);
        let mut all_kinds: Vec<ViolationKind> = all_kinds.collect();
        all_kinds.sort();
        all_kinds.dedup();
        let mut kinds = all_kinds.clone();
        kinds.retain(|kind| counts(*kind, fence));
        let mut doubts = once.judgement.doubts.iter();
        let missed = once.missed.first().map(|gap| gap.text.clone());
        let doubt = missed.or_else(|| doubts.clone().next().map(|it| it.text.clone()));
        let silent = doubts.find(|it| is_of_the_record(&it.reason));
        let mut silent = silent.map(|it| it.text.clone());
        // A fault that nobody saw may have bitten all the same, and then it is the excuse.
        let mut rows = once.record.faults.iter();
        let may_have_bitten =
            |row: &&FaultRow| row.stage == FaultStage::Unproven && !is_of_nothing(&row.reason);
        if let Some(row) = rows.find(may_have_bitten) {
            kinds.clear();
            silent.get_or_insert_with(|| row.detail.clone());
        }
        Shown {
            kinds,
            all_kinds,
            doubt,
            silent,
            faults: once.record.faults.iter().filter(|row| bit(row)).count() as u64,
            orders: orders(&once.record),
        }
    }
}

/// Returns whether a break is worth finding: a fence orders writes, and knows nothing of reads.
fn counts(kind: ViolationKind, fence: Option<Fence>) -> bool {
    kind != ViolationKind::LostUpdate || fence == Some(Fence::Off)
}

fn is_of_nothing(reason: &Option<UnprovenReason>) -> bool {
    reason.as_ref().is_some_and(UnprovenReason::is_of_nothing)
}

/// Returns whether a doubt is about what happened, and not about whether a timeline was carried
/// out as somebody wrote it: nobody wrote this one.
fn is_of_the_record(doubt: &DoubtReason) -> bool {
    match doubt {
        DoubtReason::Fault { what, .. } => match what {
            FaultDoubt::Unproven(reason) | FaultDoubt::NotSeenToEnd(reason) => {
                !is_of_nothing(reason)
            }
            FaultDoubt::TooShort | FaultDoubt::WithoutEnd | FaultDoubt::OnlyHealed => false,
        },
        DoubtReason::FaultMissing { .. }
        | DoubtReason::Unfinished { .. }
        | DoubtReason::NothingTested
        | DoubtReason::NotOffered => false,
        DoubtReason::Gap
        | DoubtReason::LogNotWhole
        | DoubtReason::RowTwice
        | DoubtReason::Contradiction
        | DoubtReason::TimesBackwards
        | DoubtReason::WriteUnknown
        | DoubtReason::Metric => true,
    }
}
