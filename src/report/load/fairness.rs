//! Who was served when, of all cases and steps in one table.

use super::INDENT;
use super::words::cut;
use crate::model::{CaseResult, ContendStep, LoadRecord};
use crate::report::grid::Grid;
use crate::report::units::{figure, percent, time};

const LONGEST_NAME: usize = 24;

/// Empty where nobody contended.
pub fn table(loads: &[(&CaseResult, &LoadRecord)], width: usize) -> String {
    let steps: Vec<(&str, &ContendStep)> = loads
        .iter()
        .flat_map(|(case, load)| load.steps.iter().map(|step| (case.name.as_str(), step)))
        .collect();
    if steps.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(&[
        "fairness",
        "contenders",
        "out of order",
        "overtakes",
        "max",
        "Jain",
        "worst wait",
        "starved",
    ]);
    for (case, step) in steps {
        let fairness = &step.fairness;
        let granted = |words: String| match step.acquisitions {
            0 => "-".to_owned(),
            _ => words,
        };
        grid.row(vec![
            cut(case, LONGEST_NAME),
            step.contenders.to_string(),
            granted(percent(fairness.out_of_order)),
            granted(figure(fairness.mean_overtakes)),
            granted(fairness.max_overtakes.to_string()),
            granted(format!("{:.3}", fairness.jain)),
            time(fairness.worst_wait_us as f64),
            fairness.starved.to_string(),
        ]);
    }
    grid.text(INDENT, width) + "\n"
}
