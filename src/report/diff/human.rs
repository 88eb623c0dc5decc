//! A difference for a person at a terminal.

use super::*;

/// The name of a run in this text, and a value to read from it.
type OfRun<T, A> = (&'static str, fn(&T) -> A);

pub fn screen(difference: &Difference, look: &Look) -> String {
    let width = look.width;
    let changed = match difference.verdict_changed {
        true => look.paint("a verdict changed", Color::Bad),
        false => look.paint("the same verdicts", Color::Good),
    };
    let mut text = format!("{}: {changed}\n", shown::line(&difference.scenario));
    let mut grid = Grid::new(&["  case", "old", "new"]);
    for verdict in &difference.verdicts {
        let mark = if verdict.is_changed() { '!' } else { ' ' };
        let [old, new] = verdict.cells();
        grid.row(vec![format!("{mark} {}", verdict.case), old, new]);
    }
    text += &grid.text("", width);
    text += &unfinished(difference, width);
    text += &changes("not the same conditions", &difference.conditions, width);
    text += &changes("judged otherwise", &difference.findings, width);
    text += &measurements(difference, look);
    text += &changes("not the same environment", &difference.environment, width);
    text
}

fn unfinished(difference: &Difference, width: usize) -> String {
    let runs: [OfRun<Verdict, CaseStatus>; 2] = [("old", |one| one.old), ("new", |one| one.new)];
    let lines = runs.into_iter().filter_map(|(run, standing)| {
        let cases = difference.verdicts.iter();
        let cases = cases.filter(|verdict| standing(verdict) == CaseStatus::Unfinished);
        let cases = joined(cases.map(|verdict| &verdict.case), ", ");
        let words = format!("the {run} run ended before it had judged {cases}");
        (!cases.is_empty()).then(|| wrapped(&words, "", width))
    });
    lines.collect()
}

fn changes(title: &str, changes: &[Change], width: usize) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut text = format!("{title}:\n");
    for change in changes {
        let case = change.case.iter().map(|case| format!("{case} "));
        let case: String = case.collect();
        let (old, new) = (words(&change.old), words(&change.new));
        let line = format!("{case}{}: {old} -> {new}", change.what);
        text += &wrapped(&line, "  ", width);
    }
    text
}

pub fn words(value: &Option<Value>) -> String {
    match value {
        Some(Value::String(text)) if !text.is_empty() => text.clone(),
        None | Some(Value::String(_)) => "none".to_owned(),
        Some(value) => value.to_string(),
    }
}

fn measurements(difference: &Difference, look: &Look) -> String {
    let mut text = wrapped(&measured_words(difference), "", look.width);
    let mut grid = Grid::new(&["  measurement", "old", "new", "ratio"]);
    for measured in measured_to_show(difference, look.all) {
        let mark = if measured.beyond { '!' } else { ' ' };
        grid.row(vec![
            format!("{mark} {} {}", measured.case, measured.what),
            measured.written(measured.old),
            measured.written(measured.new),
            measured.ratio_words(),
        ]);
    }
    if !grid.is_empty() {
        text += &grid.text("", look.width);
    }
    for line in in_one_run_only(difference) {
        text += &wrapped(&line, "", look.width);
    }
    text
}

/// Returns how many measurements were compared, and how many of them are beyond the noise.
pub fn measured_words(difference: &Difference) -> String {
    let all = difference.measurements.iter();
    let both = all.filter(|one| one.old.is_some() && one.new.is_some());
    let beyond = difference.beyond().count();
    format!(
        "measurements: {beyond} of {} beyond the noise",
        both.count()
    )
}

/// Returns one line per run about the measurements that only it has, instead of one line per
/// number.
pub fn in_one_run_only(difference: &Difference) -> Vec<String> {
    let runs: [OfRun<Measured, bool>; 2] = [
        ("old", |one| one.new.is_none()),
        ("new", |one| one.old.is_none()),
    ];
    let lines = runs.into_iter().filter_map(|(run, is_alone)| {
        let alone = difference.measurements.iter().filter(|one| is_alone(one));
        let alone: Vec<&Measured> = alone.collect();
        let first = alone.first()?;
        let (count, case, what) = (alone.len(), &first.case, &first.what);
        Some(format!(
            "only the {run} run has {count} more, the first of them {case} {what} (--all shows them)"
        ))
    });
    lines.collect()
}

/// Returns the measurements beyond the noise, or all.
pub fn measured_to_show(difference: &Difference, all: bool) -> impl Iterator<Item = &Measured> {
    let measurements = difference.measurements.iter();
    measurements.filter(move |measured| all || measured.beyond)
}
