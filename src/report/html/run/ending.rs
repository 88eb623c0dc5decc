//! The end of the page: how long it took, where it ran, and how to repeat it.

use super::*;
use crate::report::html::table::{markup, name, number, table, words};
use crate::report::shown::in_a_shell;

/// The comment that a command leaves in the scenario that it writes from its options.
const WRITTEN_BY: &str = "# Written by: ";
const MOST_ROWS: usize = 200;
const LONGEST_VALUE: usize = 1_000;
/// This is far longer than any scenario written by hand.
const LONGEST_SCENARIO: usize = 50_000;

pub fn ending(page: &RunPage<'_>) -> Markup {
    let run = page.run;
    let typed = typed(page);
    let by_name = typed.map_or_else(|| command(page, &run.scenario), str::to_owned);
    let own = run.folder.join("scenario.yml").display().to_string();
    let scenario = cut(page.scenario.trim_end(), LONGEST_SCENARIO);
    let is_cut = scenario.len() < page.scenario.trim_end().len();
    html! {
        section #again {
            h2 { "To see it again" }
            pre data-command="run" { (by_name) }
            @if typed.is_none() {
                p { "Or, where no scenario of that name is in the library, or it says something \
                     else by now, from the text as it was run:" }
                pre data-command="own" { (command(page, &own)) }
            }
            p { small {
                "The text as it was run is " code { "scenario.yml" } " beside this page; its hash is "
                code { (run.scenario_hash) } ". " code { "fencepost check" }
                " judges the recorded files again."
            } }
            details {
                summary {
                    "Scenario" @if is_cut { ", the beginning; all of it is in scenario.yml" }
                }
                pre { (scenario) }
            }
            details { summary { "Environment" } (environment(page)) }
            details { summary { "How long it took" } (phases(page)) }
        }
    }
}

fn environment(page: &RunPage<'_>) -> Markup {
    let all = document::environment(page.run);
    let code = |value: &str| html! { code { (cut(value, LONGEST_VALUE)) } };
    let rows = all
        .iter()
        .map(|(name, value)| vec![words(name), markup(code(value))]);
    table(&["what", ""], rows, MOST_ROWS, "result.json")
}

/// Shows the phases of all cases side by side; a missing phase is not shown as 0.
fn phases(page: &RunPage<'_>) -> Markup {
    let cases = &page.run.cases;
    let names = cases.iter().flat_map(|case| case.notes.measurements.keys());
    let names: BTreeSet<&String> = names.collect();
    let rows = names.into_iter().map(|phase| {
        let shown = phase.trim_end_matches("_ms").replace('_', " ");
        let times = cases.iter().map(|case| {
            let measured = case.notes.measurements.get(phase);
            number(measured.map_or("–".to_owned(), |ms| format!("{ms} ms")))
        });
        std::iter::once(name(shown)).chain(times).collect()
    });
    let heads = cases.iter().map(|case| case.name.as_str());
    let heads: Vec<&str> = std::iter::once("").chain(heads).collect();
    table(&heads, rows, MOST_ROWS, "result.json")
}

/// Returns the command line, if the scenario was written from one.
fn typed<'a>(page: &RunPage<'a>) -> Option<&'a str> {
    let first_line = page.scenario.lines().next();
    first_line.and_then(|line| line.strip_prefix(WRITTEN_BY))
}

/// Returns the command that repeats the run, for a scenario's name or a file.
fn command(page: &RunPage<'_>, scenario: &str) -> String {
    let run = page.run;
    let mut words = vec!["fencepost run".to_owned(), in_a_shell(scenario)];
    // Containers are the default; local processes are used only where there are none.
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
