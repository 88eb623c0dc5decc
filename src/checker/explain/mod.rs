//! Tells how it came to a violation, in at most eight steps.

mod bites;
mod chain;
mod evidence;
mod fault_words;
mod let_go;
mod lost_write;
mod misses;
mod of_a_row;
mod of_the_lock;
mod other_value;
mod scene;

pub(super) use evidence::Evidence;
pub(super) use misses::misses;

use super::counts::is_stale;
use super::lock_rules::Break;
use crate::model::{Party, Story, StoryStep, Violation, ViolationKind};
use scene::{Scene, Voice};

/// More than a few stories of one case say the same again.
const MAX_STORIES: usize = 3;
const MAX_STEPS: usize = 8;

/// One story for each violating write, the earliest first, and one for each promise
/// that the lock broke. Where nothing was violated, the first late write that the
/// resource refused is worth telling: it is what the fence was there for.
pub(super) fn stories<'a>(
    evidence: &Evidence<'_, 'a>,
    violations: &[Violation],
    breaks: &[Break<'a>],
) -> Vec<Story> {
    let mut stories: Vec<Story> = Vec::new();
    for broken in breaks.iter().filter(|it| it.excuse.is_none()) {
        let is_told = |story: &Story| story.kinds == [broken.kind];
        if stories.len() < MAX_STORIES && !stories.iter().any(is_told) {
            stories.push(of_the_lock::tell(evidence, broken));
        }
    }
    // The violations come sorted by row and kind. Promises of the resource alone are
    // not about how a write got in, so they have stories of their own.
    let of_writes = violations
        .chunk_by(|one, next| one.row == next.row && !is_apart(one) && !is_apart(next))
        .filter_map(|of_one_write| match of_one_write[0].kind {
            ViolationKind::AcknowledgedWriteLost => lost_write::tell(evidence, &of_one_write[0]),
            ViolationKind::ValueNotAccepted => other_value::tell(evidence, &of_one_write[0])
                .or_else(|| of_a_row::tell(evidence, &of_one_write[0])),
            kind if kind.party() == Party::Resource => of_a_row::tell(evidence, &of_one_write[0]),
            _ => chain::of_violations(evidence, of_one_write),
        });
    stories.extend(of_writes.take(MAX_STORIES));
    stories.truncate(MAX_STORIES);
    if stories.is_empty() {
        let refused = evidence.sound.log.iter().position(is_stale);
        let title = "the stale write that was refused";
        let refused = refused.map(|index| chain::of_refusal(evidence, index, title));
        stories.extend(refused);
    }
    if stories.is_empty() {
        let excused = breaks.iter().find(|it| it.excuse.is_some());
        stories.extend(excused.map(|broken| of_the_lock::tell(evidence, broken)));
    }
    stories
}

fn is_apart(violation: &Violation) -> bool {
    violation.kind.party() == Party::Resource
}

/// What a story of broken rules is about.
fn title(kinds: &[ViolationKind]) -> String {
    let kinds: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
    format!("violation: {}", kinds.join(", "))
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
