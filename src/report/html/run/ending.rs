//! The end of the page: how long it took, where it ran, and how to see it again.

use super::RunPage;
use crate::report::html::table::{Cell, table};
use crate::report::json;
use crate::report::markup::{cut, element, escaped};
use std::collections::BTreeSet;

/// The remark that a command leaves in the scenario that it writes from its options.
const WRITTEN_BY: &str = "# Written by: ";
const MOST_ROWS: usize = 200;
const LONGEST_VALUE: usize = 1_000;
/// Far more than anybody writes by hand.
const LONGEST_SCENARIO: usize = 50_000;

pub fn ending(page: &RunPage<'_>) -> String {
    let run = page.run;
    let mut text = "<section id=\"again\">\n<h2>To see it again</h2>\n".to_owned();
    let typed = typed(page);
    let by_name = typed.map_or_else(|| command(page, &run.scenario), str::to_owned);
    text += &element("pre", &[("data-command", &"run")], &escaped(&by_name));
    if typed.is_none() {
        let own = run.folder.join("scenario.yml").display().to_string();
        let own = element(
            "pre",
            &[("data-command", &"own")],
            &escaped(&command(page, &own)),
        );
        text += "\n<p>Or, where no scenario of that name is in the library, or it says something else by now, \
                 from the text as it was run:</p>\n";
        text += &own;
    }
    text += &format!(
        "\n<p><small>The text as it was run is <code>scenario.yml</code> beside this page; its hash is \
         <code>{}</code>. <code>fencepost check</code> judges the recorded files again.</small></p>\n",
        escaped(&run.scenario_hash),
    );
    let scenario = cut(page.scenario.trim_end(), LONGEST_SCENARIO);
    let is_cut = scenario.len() < page.scenario.trim_end().len();
    text += &format!(
        "<details>\n<summary>Scenario{}</summary>\n{}\n</details>\n",
        if is_cut {
            ", the beginning; all of it is in scenario.yml"
        } else {
            ""
        },
        element("pre", &[], &escaped(&scenario))
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
    let rows: Vec<_> = rows.collect();
    table(&["what", ""], rows, MOST_ROWS, "result.json")
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
    table(&heads, rows, MOST_ROWS, "result.json")
}

fn code(text: &str) -> String {
    element("code", &[], &escaped(&cut(text, LONGEST_VALUE)))
}

/// What was typed, where the scenario was written from that.
fn typed<'a>(page: &RunPage<'a>) -> Option<&'a str> {
    let first_line = page.scenario.lines().next();
    first_line.and_then(|line| line.strip_prefix(WRITTEN_BY))
}

/// What to type for the same run of a scenario by its name, or of a file.
fn command(page: &RunPage<'_>, scenario: &str) -> String {
    let run = page.run;
    let mut words = vec!["fencepost run".to_owned(), in_a_shell(scenario)];
    // Containers are the default, and processes only where there are none.
    let is_local = run
        .environment
        .get("runtime")
        .is_some_and(|runtime| runtime == "local");
    words.extend(is_local.then(|| "--runtime local".to_owned()));
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
