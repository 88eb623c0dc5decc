//! The outcome of the lock, beside the verdict, and the meaning of every violation.

use super::*;
use crate::report::html::table::{markup, name, prose, table};

/// Shows whether the lock kept its promises, and each of them; nothing for a case without a lock.
pub fn promises(case: &CaseResult) -> Markup {
    let lock = lock::outcome(case).zip(lock::summary(case));
    html! {
        @if let Some((outcome, summary)) = lock {
            p.lock data-lock=(lock::name(outcome)) {
                span class=(class(outcome)) { (summary) }
                @for line in lock::details(&case.judgement) { br; (line) }
            }
            (every_promise(case, outcome))
        }
    }
}

/// Shows every promise, folded if none was broken or excused.
fn every_promise(case: &CaseResult, outcome: LockOutcome) -> Markup {
    let promises = &case.judgement.promises;
    let rows = promises.iter().map(|(promise, kept)| {
        let why = kept.reason().unwrap_or_default();
        vec![
            name(promise),
            markup(badge(kept)),
            prose(promise.means()),
            prose(why),
        ]
    });
    let heads = ["promise", "", "what it means", "why it was not checked"];
    let is_open = matches!(outcome, LockOutcome::Broken | LockOutcome::Excused);
    html! {
        @if !promises.is_empty() {
            details open[is_open] {
                summary { "Promises of the lock" }
                (table(&heads, rows, usize::MAX, "result.json"))
            }
        }
    }
}

fn badge(kept: &Kept) -> Markup {
    let class = match kept {
        Kept::Kept => "kept",
        Kept::Broken => "broken",
        Kept::Excused | Kept::NotTested | Kept::NotChecked(_) | Kept::NotOffered => "calm",
    };
    html! { span class=(class) { (kept.word().replace('_', " ")) } }
}

fn class(outcome: LockOutcome) -> &'static str {
    match outcome {
        LockOutcome::Kept => "kept",
        LockOutcome::Broken => "broken",
        LockOutcome::Excused | LockOutcome::NotTested => "calm",
    }
}

/// Explains every kind of violation, because the page uses their names.
pub fn kinds() -> Markup {
    let rows =
        ViolationKind::ALL.map(|kind| vec![name(kind), name(kind.breaks()), prose(kind.means())]);
    let heads = ["violation", "breaks the word of", "what it means"];
    html! {
        section #kinds { details {
            summary { "What the violations mean" }
            (table(&heads, rows, usize::MAX, "scenarios/README.md"))
        } }
    }
}
