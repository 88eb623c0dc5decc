//! Tells how it came to a violation, in at most eight steps.

mod bites;
mod chain;
mod evidence;
mod fault_words;
mod let_go;
mod lost_write;
mod other_value;
mod scene;

use super::counts::is_stale;
use super::holds::Hold;
use super::names::Names;
use super::positions::Positions;
use crate::model::{CaseRecord, Story, StoryStep, Violation, ViolationKind};
use evidence::Evidence;
use scene::{Scene, Voice};

/// More than a few stories of one case say the same again.
const MAX_STORIES: usize = 3;
const MAX_STEPS: usize = 8;

/// One story for each violating write, the earliest first. Where nothing was
/// violated, the first late write that the resource refused is worth telling:
/// it is what the fence was there for.
pub(super) fn stories(
    record: &CaseRecord,
    violations: &[Violation],
    holds: &[Hold],
    positions: &Positions,
    names: &Names,
) -> Vec<Story> {
    let evidence = Evidence {
        record,
        holds,
        positions,
        names,
    };
    if violations.is_empty() {
        let refused = record.log.iter().position(is_stale);
        return refused
            .map(|index| chain::of_refusal(&evidence, index))
            .into_iter()
            .collect();
    }
    // The violations come sorted by row and kind. The last two kinds are not
    // about how the write at that row got in, so they have stories of their own.
    violations
        .chunk_by(|one, next| one.row == next.row && !is_apart(one) && !is_apart(next))
        .filter_map(|of_one_write| match of_one_write[0].kind {
            ViolationKind::AcknowledgedWriteLost => lost_write::tell(&evidence, &of_one_write[0]),
            ViolationKind::ValueNotAccepted => other_value::tell(&evidence, &of_one_write[0]),
            _ => chain::of_violations(&evidence, of_one_write),
        })
        .take(MAX_STORIES)
        .collect()
}

fn is_apart(violation: &Violation) -> bool {
    matches!(
        violation.kind,
        ViolationKind::AcknowledgedWriteLost | ViolationKind::ValueNotAccepted
    )
}

/// A scene with its time and with how badly the story needs it.
struct Step<'a> {
    need: Need,
    at_ns: u64,
    scene: Scene<'a>,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Essential,
    Helpful,
    /// Told where there is room.
    Colour,
}

/// Brings the steps into the order of time and keeps those that matter most;
/// the last step is what the story leads up to and always stays last.
fn assemble<'a>(mut steps: Vec<Step<'a>>, last: Step<'a>) -> Vec<StoryStep> {
    steps.sort_by_key(|step| step.need);
    steps.truncate(MAX_STEPS - 1);
    steps.sort_by_key(|step| step.at_ns);
    steps.push(last);
    let mut tokens: Vec<_> = steps.iter().flat_map(|step| step.scene.tokens()).collect();
    tokens.sort_unstable();
    tokens.dedup();
    steps
        .iter()
        .map(|step| StoryStep {
            at_ns: step.at_ns,
            kind: step.scene.kind(),
            symbolic: step.scene.tell(&Voice::Symbolic(&tokens)),
            concrete: step.scene.tell(&Voice::Concrete),
        })
        .collect()
}
