//! What came of all comparisons, as somebody asked for it.

use super::{CameTo, Comparison};
use crate::report::diff::{page, screen};
use crate::report::look::Look;
use crate::report::markup::cell;
use crate::report::shown;
use serde_json::{Value, json};
use std::path::PathBuf;

pub fn human(comparisons: &[Comparison], look: &Look) -> String {
    let compared = comparisons.iter().filter_map(|comparison| {
        let CameTo::Compared(difference) = &comparison.came_to else {
            return None;
        };
        let [old, new] = [&comparison.pair.old, &comparison.pair.new].map(path);
        let files = format!("old: {old}\nnew: {new}\n");
        Some(screen(difference, look) + &files)
    });
    compared.collect::<Vec<String>>().join("\n")
}

pub fn markdown<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>, all: bool) -> String {
    let told = comparisons.into_iter().map(|comparison| {
        let called = cell(&comparison.pair.called);
        match &comparison.came_to {
            CameTo::Compared(difference) => page(difference, all),
            CameTo::OnlyNew => format!("### {called}: only the new side has a run of it\n"),
            CameTo::NotComparable(reasons) => {
                let reasons = reasons.iter().map(|reason| cell(reason));
                let reasons = reasons.collect::<Vec<String>>().join("\n\n");
                format!("### {called}: **not comparable**\n\n{reasons}\n")
            }
        }
    });
    told.collect::<Vec<String>>().join("\n")
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
            CameTo::Compared(difference) => told["difference"] = json!(difference),
            CameTo::NotComparable(reasons) => told["not_comparable"] = json!(reasons),
            CameTo::OnlyNew => {}
        }
        told
    });
    told.collect()
}

fn path(path: &Option<PathBuf>) -> String {
    let path = path.as_ref().map(|path| path.display().to_string());
    shown::line(&path.unwrap_or_default()).into_owned()
}
