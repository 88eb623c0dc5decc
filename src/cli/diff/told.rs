//! The results of all comparisons, in each output format.

use super::*;
use crate::report::diff::{page, screen};
use crate::report::look::Look;
use crate::report::markup::cell;

pub fn human(comparisons: &[Comparison], look: &Look) -> String {
    let compared = comparisons.iter().filter_map(|comparison| {
        let ComparisonOutcome::Compared(difference) = &comparison.came_to else {
            return None;
        };
        let [old, new] = [&comparison.pair.old, &comparison.pair.new].map(path);
        let files = format!("old: {old}\nnew: {new}\n");
        Some(screen(difference, look) + &files)
    });
    joined(compared, "\n")
}

pub fn markdown<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>, all: bool) -> String {
    let told = comparisons.into_iter().map(|comparison| {
        let called = cell(&comparison.pair.called);
        match &comparison.came_to {
            ComparisonOutcome::Compared(difference) => page(difference, all),
            ComparisonOutcome::OnlyNew => {
                format!("### {called}: only the new side has a run of it\n")
            }
            ComparisonOutcome::NotComparable(reasons) => {
                let reasons = reasons.iter().map(|reason| cell(reason));
                let reasons = joined(reasons, "\n\n");
                format!("### {called}: **not comparable**\n\n{reasons}\n")
            }
        }
    });
    joined(told, "\n")
}

pub fn json(all: &[Comparison]) -> String {
    let document = format!("{:#}\n", json!({ "comparisons": comparisons(all) }));
    shown::json(&document).into_owned()
}

pub fn comparisons(all: &[Comparison]) -> Value {
    let told = all.iter().map(|comparison| {
        let [old, new] = [&comparison.pair.old, &comparison.pair.new];
        let mut told = json!({ "old": old, "new": new });
        match &comparison.came_to {
            ComparisonOutcome::Compared(difference) => told["difference"] = json!(difference),
            ComparisonOutcome::NotComparable(reasons) => told["not_comparable"] = json!(reasons),
            ComparisonOutcome::OnlyNew => {}
        }
        told
    });
    told.collect()
}

fn path(path: &Option<PathBuf>) -> String {
    let path = path.as_ref().map(|path| path.display().to_string());
    shown::line(&path.unwrap_or_default()).into_owned()
}
