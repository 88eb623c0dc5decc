//! Explains violations, each in at most eight steps.

mod bites;
mod chain;
mod evidence;
mod fault_words;
mod let_go;
mod misses;
mod of_the_lock;
mod of_the_resource;
mod scene;

pub(super) use misses::misses;

use super::*;
use chain::{decision, essential, granted, told, told_closely};
use of_the_resource::{broken_word, lost_write, other_value};
use scene::{Scene, Who};

/// More than a few stories of one case repeat each other.
const MAX_STORIES: usize = 3;
const MAX_STEPS: usize = 8;

/// Returns one story for each violating write, the earliest first, and one for each
/// promise that the lock broke. If nothing was violated, it returns the first late write
/// that the resource refused: that is what the fence is for.
pub(super) fn stories<'a>(
    case: &Case<'_, 'a>,
    violations: &[Violation],
    breaks: &[Break<'a>],
) -> Vec<Story> {
    let mut stories: Vec<Story> = Vec::new();
    for broken in breaks.iter().filter(|it| it.excuse.is_none()) {
        let is_told = |story: &Story| story.kinds == [broken.kind];
        if stories.len() < MAX_STORIES && !stories.iter().any(is_told) {
            stories.push(of_the_lock::tell(case, broken));
        }
    }
    // The violations come sorted by row and kind. Promises of the resource alone are not
    // about how a write got in, so they have separate stories.
    let of_writes = violations
        .chunk_by(|one, next| one.row == next.row && !is_apart(one) && !is_apart(next))
        .filter_map(|of_one_write| match of_one_write[0].kind {
            ViolationKind::AcknowledgedWriteLost => lost_write(case, &of_one_write[0]),
            ViolationKind::ValueNotAccepted => other_value(case, &of_one_write[0])
                .or_else(|| Some(broken_word(case, &of_one_write[0]))),
            kind if kind.party() == Party::Resource => Some(broken_word(case, &of_one_write[0])),
            _ => chain::of_violations(case, of_one_write),
        });
    stories.extend(of_writes.take(MAX_STORIES));
    stories.truncate(MAX_STORIES);
    if stories.is_empty() {
        let refused = case.sound.log.iter().position(is_stale);
        let title = "the stale write that was refused";
        let refused = refused.map(|index| chain::of_refusal(case, index, title));
        stories.extend(refused);
    }
    if stories.is_empty() {
        let excused = breaks.iter().find(|it| it.excuse.is_some());
        stories.extend(excused.map(|broken| of_the_lock::tell(case, broken)));
    }
    stories
}

fn is_apart(violation: &Violation) -> bool {
    violation.kind.party() == Party::Resource
}

fn title(kinds: &[ViolationKind]) -> String {
    format!("violation: {}", joined(kinds, ", "))
}

fn story_of(violation: &Violation, steps: Vec<Step>, last: Step) -> Story {
    Story {
        key: violation.key.clone(),
        row: violation.row,
        kinds: vec![violation.kind],
        title: title(&[violation.kind]),
        steps: assemble(steps, last),
    }
}

/// A scene with its time and its importance for the story.
struct Step {
    need: Need,
    at_ns: u64,
    scene: Scene,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Essential,
    Helpful,
    /// Included if there is room.
    Colour,
}

/// Sorts the steps by time and keeps the most important ones. The last step is the
/// outcome of the story and always stays last.
fn assemble(mut steps: Vec<Step>, last: Step) -> Vec<StoryStep> {
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
            kind: step.scene.kind,
            symbolic: step.scene.symbolic(&tokens),
            concrete: step.scene.concrete(),
        })
        .collect()
}
