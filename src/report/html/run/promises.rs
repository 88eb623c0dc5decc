//! What became of the lock, beside the verdict; and what every violation means.

use crate::model::{CaseResult, Kept, LockOutcome, Promise, ViolationKind};
use crate::report::html::table::{Cell, table};
use crate::report::lock;
use crate::report::markup::{element, escaped};

/// Whether the lock kept its promises, and each of them; nothing for a case without a lock.
pub fn promises(case: &CaseResult) -> String {
    let Some((outcome, summary)) = lock::outcome(case).zip(lock::summary(case)) else {
        return String::new();
    };
    let badge = element("span", &[("class", &class(outcome))], &escaped(&summary));
    let details = lock::details(&case.judgement).into_iter();
    let details = details.map(|line| format!("<br>{}", escaped(&line)));
    let attributes = [
        ("class", &"lock" as _),
        ("data-lock", &lock::name(outcome) as _),
    ];
    let words = element("p", &attributes, &(badge + &details.collect::<String>()));
    format!("{words}\n{}", every_promise(case, outcome))
}

/// Folded up where all is well.
fn every_promise(case: &CaseResult, outcome: LockOutcome) -> String {
    let rows = case.judgement.promises.iter().map(|(promise, kept)| {
        vec![
            Cell::name(promise),
            Cell::markup(badge(kept)),
            Cell::prose(meaning(*promise)),
            Cell::prose(kept.reason().unwrap_or_default()),
        ]
    });
    let heads = ["promise", "", "what it means", "why it was not checked"];
    let rows = table(&heads, rows, usize::MAX, "result.json");
    let is_open = matches!(outcome, LockOutcome::Broken | LockOutcome::Excused);
    match rows.is_empty() {
        true => rows,
        false => format!(
            "<details{}>\n<summary>Promises of the lock</summary>\n{rows}</details>\n",
            if is_open { " open" } else { "" }
        ),
    }
}

fn badge(kept: &Kept) -> String {
    let class = match kept {
        Kept::Kept => "kept",
        Kept::Broken => "broken",
        Kept::Excused | Kept::NotTested | Kept::NotChecked(_) | Kept::NotOffered => "calm",
    };
    let words = kept.word().replace('_', " ");
    element("span", &[("class", &class)], &words)
}

fn class(outcome: LockOutcome) -> &'static str {
    match outcome {
        LockOutcome::Kept => "kept",
        LockOutcome::Broken => "broken",
        LockOutcome::Excused | LockOutcome::NotTested => "calm",
    }
}

fn meaning(promise: Promise) -> &'static str {
    match promise {
        Promise::Exclusion => "Nobody is granted a key while another's covered time lasts.",
        Promise::Tokens => "Later grants have higher tokens.",
        Promise::Timeliness => "Nobody is told of a grant that is over already.",
        Promise::Release => "A release frees nothing but one's own hold.",
        Promise::Loss => "A holder stops claiming by the end of its validity.",
        Promise::Progress => "A free key is granted to whoever asks for it.",
        Promise::Order => "Grants follow arrivals.",
        Promise::Renewal => "A renewal prolongs, and never re-creates.",
    }
}

/// Every kind of violation in words, for whoever meets its name on this page.
pub fn kinds() -> String {
    let rows = ViolationKind::ALL.map(|kind| {
        vec![
            Cell::name(kind),
            Cell::name(kind.breaks()),
            Cell::prose(kind.means()),
        ]
    });
    let heads = ["violation", "breaks the word of", "what it means"];
    let rows = table(&heads, rows, usize::MAX, "scenarios/README.md");
    format!(
        "<section id=\"kinds\">\n<details>\n<summary>What the violations mean</summary>\n{rows}</details>\n</section>\n"
    )
}
