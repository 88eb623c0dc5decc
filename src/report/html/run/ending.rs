//! The end of the page: how long it took, where it ran, and how to see it again.

use super::RunPage;
use crate::report::html::table::{Cell, table};
use crate::report::json;
use crate::report::markup::{element, escaped};
use std::collections::BTreeSet;

/// The remark that a command leaves in the scenario that it writes from its options.
const WRITTEN_BY: &str = "# Written by: ";
const MOST_ROWS: usize = 200;

pub fn ending(page: &RunPage<'_>) -> String {
    let run = page.run;
    let mut text = "<section id=\"again\">\n<h2>To see it again</h2>\n".to_owned();
    text += &element("pre", &[("data-command", &"run")], &escaped(&command(page)));
    text += &format!(
        "\n<p><small>The text as it was run is <code>scenario.yml</code> beside this page; its hash is \
         <code>{}</code>. <code>fencepost check</code> judges the recorded files again.</small></p>\n",
        escaped(&run.scenario_hash),
    );
    text += &format!(
        "<details>\n<summary>Scenario</summary>\n{}\n</details>\n",
        element("pre", &[], &escaped(page.scenario.trim_end()))
    );
    text += &format!(
        "<details>\n<summary>Environment</summary>\n{}</details>\n",
        environment(page)
    );
    text += &format!(
        "<details>\n<summary>How long it took</summary>\n{}</details>\n",
        phases(page)
    );
    text + "</section>\n"
}

fn environment(page: &RunPage<'_>) -> String {
    let all = json::environment(page.run);
    let all = all.as_object().into_iter().flatten();
    let rows = all.map(|(name, value)| {
        let value = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        vec![Cell::words(name), Cell::markup(code(&value))]
    });
    table(&["what", ""], rows.collect(), MOST_ROWS, "result.json")
}

/// Phases of all cases beside each other; one that a case did not have is not 0.
fn phases(page: &RunPage<'_>) -> String {
    let cases = &page.run.cases;
    let names = cases.iter().flat_map(|case| case.notes.measurements.keys());
    let names: BTreeSet<&String> = names.collect();
    let rows = names.into_iter().map(|name| {
        let shown = name.trim_end_matches("_ms").replace('_', " ");
        let times = cases.iter().map(|case| {
            let measured = case.notes.measurements.get(name);
            Cell::number(measured.map_or("–".to_owned(), |ms| format!("{ms} ms")))
        });
        std::iter::once(Cell::name(shown)).chain(times).collect()
    });
    let heads = cases.iter().map(|case| case.name.as_str());
    let heads: Vec<&str> = std::iter::once("").chain(heads).collect();
    table(&heads, rows.collect(), MOST_ROWS, "result.json")
}

fn code(text: &str) -> String {
    element("code", &[], &escaped(text))
}

/// What to type for the same run.
fn command(page: &RunPage<'_>) -> String {
    let run = page.run;
    let first_line = page.scenario.lines().next();
    if let Some(typed) = first_line.and_then(|line| line.strip_prefix(WRITTEN_BY)) {
        return typed.to_owned();
    }
    let mut words = vec!["fencepost run".to_owned(), in_a_shell(&run.scenario)];
    words.extend(run.seed.map(|seed| format!("--seed {seed}")));
    words.extend(page.only.map(|case| format!("--case {}", in_a_shell(case))));
    let settings = run.settings.iter();
    words.extend(settings.map(|setting| format!("--set {}", in_a_shell(setting))));
    let mutant = run.mutant.iter();
    words.extend(mutant.map(|mutant| format!("--mutant {}", in_a_shell(mutant))));
    words.join(" ")
}

fn in_a_shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/=:,@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
