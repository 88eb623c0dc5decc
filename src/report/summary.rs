//! The results of all runs of one command, as Markdown for the page of a CI job.

use super::markup::{cell, code};
use super::terminal::case_text;
use super::*;

/// GitHub accepts 1 MiB from a step, and drops a longer summary completely.
const MOST_BYTES: usize = 600_000;
/// The most bytes about one run; its folder has the rest.
const MOST_BYTES_OF_A_RUN: usize = 20_000;
/// The most bad runs that are explained for each scenario.
const RUNS_TOLD: usize = 3;

#[derive(Default)]
pub struct Summary {
    scenarios: BTreeMap<String, ScenarioRuns>,
}

/// All runs of one scenario.
#[derive(Default)]
struct ScenarioRuns {
    outcomes: BTreeMap<Outcome, u32>,
    /// The number of cases of all its runs together.
    cases: usize,
    cases_as_expected: usize,
    /// The number of cases for each outcome of the lock.
    locks: BTreeMap<LockOutcome, u32>,
    /// The folder of the first of the worst runs; empty if none began.
    folder: String,
    worst: Option<Outcome>,
    /// The comparison of services in the latest run.
    services: String,
    explanations: Vec<String>,
}

impl Summary {
    pub fn add(&mut self, run: &RunRecord) {
        let told = self.scenarios.entry(run.scenario.to_string()).or_default();
        let verdict = run.verdict();
        *told.outcomes.entry(verdict).or_default() += 1;
        told.cases += run.cases.len() + run.unfinished.len();
        told.cases_as_expected += run.cases_as_expected();
        for outcome in run.cases.iter().filter_map(lock::outcome) {
            *told.locks.entry(outcome).or_default() += 1;
        }
        if told.worst.is_none_or(|worst| verdict < worst) {
            told.worst = Some(verdict);
            told.folder = run.folder.display().to_string();
        }
        let services = comparison::markdown(run);
        if !services.is_empty() {
            told.services = format!("### {}: services\n\n{services}", cell(&run.scenario));
        }
        if verdict != Outcome::AsExpected && told.explanations.len() < RUNS_TOLD {
            told.explanations.push(explanation(run));
        }
    }

    /// Returns the folder of the first of each scenario's worst runs.
    pub fn worst_runs(&self) -> impl Iterator<Item = (&str, &str)> {
        let began = self.scenarios.iter();
        let began = began.filter(|(_, told)| !told.folder.is_empty());
        began.map(|(scenario, told)| (scenario.as_str(), told.folder.as_str()))
    }

    /// Returns the page: the table first, then what is not as expected, then `more`, as far as
    /// it fits. `but` is what the heading must mention.
    pub fn page(&self, errors: &[String], but: &str, more: &[String]) -> String {
        let mut text = format!(
            "## fencepost: {}\n\n{}\n",
            self.verdict(errors, but),
            self.words()
        );
        for error in errors {
            let _ = writeln!(text, "\n{}", quoted(error));
        }
        text +=
            "\n| scenario | verdict | cases as expected | lock | files |\n|---|---|--:|---|---|\n";
        for (scenario, told) in &self.scenarios {
            let files = match told.folder.is_empty() {
                true => "it never began".to_owned(),
                false => code(&told.folder),
            };
            let (good, all, verdict) = (told.cases_as_expected, told.cases, told.verdict());
            let (scenario, lock) = (cell(scenario), told.lock());
            let _ = writeln!(
                text,
                "| {scenario} | {verdict} | {good} of {all} | {lock} | {files} |"
            );
        }
        let bad = self.scenarios.values().flat_map(|told| &told.explanations);
        let services = self.scenarios.values().map(|told| &told.services);
        let services = services.filter(|services| !services.is_empty());
        let mut left_out = 0;
        for section in services.chain(bad).chain(more) {
            match text.len() + section.len() > MOST_BYTES {
                true => left_out += 1,
                false => text = text + "\n" + section,
            }
        }
        if left_out > 0 {
            let _ = writeln!(text, "\n{left_out} more are too long for this page.");
        }
        text
    }

    fn verdict(&self, errors: &[String], but: &str) -> String {
        let worst = self.scenarios.values().filter_map(|told| told.worst).min();
        match (worst, errors.is_empty()) {
            (Some(worst), true) if but.is_empty() => worst.to_string(),
            (Some(Outcome::AsExpected), true) => format!("as expected, but {but}"),
            (Some(worst), true) => format!("{worst}, and {but}"),
            (Some(Outcome::NotAsExpected), false) => {
                "not as expected, and not all of it ran".into()
            }
            (Some(_), false) => "not all of it ran".into(),
            (None, _) => "nothing ran".into(),
        }
    }

    fn words(&self) -> String {
        let count = |wanted: Outcome| {
            let all = self.scenarios.values();
            all.filter(|told| told.worst == Some(wanted)).count()
        };
        let all = self.scenarios.len();
        let mut words = format!(
            "{} of {all} scenarios as expected",
            count(Outcome::AsExpected)
        );
        for outcome in [Outcome::NotAsExpected, Outcome::Inconclusive] {
            if count(outcome) > 0 {
                let _ = write!(words, ", {} {outcome}", count(outcome));
            }
        }
        words + "."
    }
}

impl ScenarioRuns {
    /// Returns the verdicts, with their counts if there were several runs.
    fn verdict(&self) -> String {
        let outcomes = self.outcomes.iter().map(|(outcome, times)| {
            let sign = Mark::of(*outcome).sign;
            match self.outcomes.values().sum::<u32>() {
                1 => format!("{sign} {outcome}"),
                runs => format!("{sign} {outcome} {times} of {runs}"),
            }
        });
        joined(outcomes, ", ")
    }

    /// Returns the outcomes of the lock, the worst first, each with its number of cases.
    fn lock(&self) -> String {
        let outcomes = self.locks.iter().map(|(outcome, cases)| {
            let word = lock::word(*outcome);
            match outcome {
                LockOutcome::Broken => format!("**{word} {cases}**"),
                _ => format!("{word} {cases}"),
            }
        });
        joined(outcomes, ", ")
    }
}

/// Describes every case that is not as expected, in the words of the final screen.
fn explanation(run: &RunRecord) -> String {
    let bad = run.cases.iter();
    let bad = bad.filter(|case| case.verdict.outcome != Outcome::AsExpected);
    let unfinished = run.unfinished.iter();
    let unfinished = unfinished.map(|case| match run.began() {
        true => format!("{}: did not finish", shown::line(case)),
        false => format!("{}: never began", shown::line(case)),
    });
    let told = joined(bad.map(case_text).chain(unfinished), "\n\n");
    let mut text = format!("### {}: {}\n\n", cell(&run.scenario), run.verdict());
    let conditions = run.settings.iter().map(|setting| code(setting));
    let mutant = run.mutant.iter();
    let mutant = mutant.map(|mutant| format!("the defect {} switched on", code(mutant)));
    let conditions = joined(conditions.chain(mutant), ", ");
    if !conditions.is_empty() {
        let _ = writeln!(text, "With {conditions}.\n");
    }
    let _ = writeln!(text, "{}", quoted(&told));
    text
}

/// Returns a block without markup, cut if it is too long.
fn quoted(words: &str) -> String {
    let words = shown::lines(words).replace("```", "'''");
    let end = (0..=MOST_BYTES_OF_A_RUN.min(words.len()))
        .rev()
        .find(|end| words.is_char_boundary(*end))
        .unwrap_or(0);
    let cut = if end < words.len() { "\n…" } else { "" };
    format!("```\n{}{cut}\n```", &words[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up::{case, lock_case, missed, run, says};

    fn bad(scenario: &str) -> RunRecord {
        let mut bad = case("fenced", None);
        bad.verdict.outcome = Outcome::NotAsExpected;
        bad.verdict.findings.push(missed("violations", "0", 3));
        let mut run = run(vec![case("unfenced", None), bad]);
        run.scenario = scenario.into();
        run
    }

    #[test]
    fn the_table_has_every_scenario_and_only_bad_ones_are_explained() {
        let mut summary = Summary::default();
        summary.add(&run(vec![case("a", None)]));
        summary.add(&bad("pause-gt"));
        let page = summary.page(&[], "", &["### and more\n".to_owned()]);
        let expected = [
            "## fencepost: not as expected\n\n1 of 2 scenarios as expected, 1 not as expected.\n",
            "| contention | ✓ as expected | 1 of 1 |  | `results/contention/1` |",
            "| pause-gt | ✗ not as expected | 1 of 2 |  | `results/contention/1` |",
            "### pause-gt: not as expected\n",
            "violations 3 where 0 was expected",
            "### and more\n",
        ];
        says(&page, &expected);
        assert!(!page.contains("### contention"), "{page}");
    }

    #[test]
    fn the_heading_knows_what_changed_since_the_baseline() {
        let mut summary = Summary::default();
        summary.add(&run(vec![case("a", None)]));
        let heading = |summary: &Summary| {
            let page = summary.page(&[], "1 differs from the baseline", &[]);
            page.lines().next().map(str::to_owned)
        };
        let words = "## fencepost: as expected, but 1 differs from the baseline";
        assert_eq!(heading(&summary).as_deref(), Some(words));
        summary.add(&bad("pause"));
        let words = "## fencepost: not as expected, and 1 differs from the baseline";
        assert_eq!(heading(&summary).as_deref(), Some(words));
    }

    #[test]
    fn what_became_of_the_lock_has_a_column() {
        let mut summary = Summary::default();
        let cases = [Kept::Kept, Kept::Broken, Kept::NotTested, Kept::Kept];
        let cases = cases.map(|kept| lock_case("a", kept));
        summary.add(&run(cases.into()));
        let page = summary.page(&[], "", &[]);
        let row = "| ✓ as expected | 4 of 4 | **broken 1**, not tested 1, kept 2 |";
        assert!(page.contains(row), "{page}");
    }

    #[test]
    fn nothing_out_of_a_record_is_markdown_or_moves_a_cursor() {
        let hostile = "a\u{1b}[2J\u{202e}|`x`\n\n# <b> ```\r";
        let mut bad = bad("bad");
        bad.settings = vec![hostile.to_owned()];
        bad.mutant = Some(hostile.to_owned());
        bad.folder = hostile.into();
        bad.cases[1].verdict.doubts = vec![Doubt::new(DoubtReason::Gap, hostile)];
        bad.cases[1].verdict.findings[0].what = hostile.to_owned();
        let mut summary = Summary::default();
        summary.add(&bad);
        let page = summary.page(&[hostile.to_owned()], "", &[]);
        let is_unseen = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
        assert!(!page.contains(is_unseen), "{page:?}");
        assert_eq!(page.matches("```").count(), 4, "two blocks\n{page}");
        let mut in_a_block = false;
        for line in page.lines() {
            in_a_block ^= line.starts_with("```");
            // Text between backticks is not markup.
            let mut outside = line.replace("\\`", "");
            if !in_a_block {
                outside = outside.split('`').step_by(2).collect();
            }
            let is_markup = outside.starts_with("# ") || outside.contains("<b>");
            assert!(in_a_block || !is_markup, "{line}\n{page}");
        }
        let row = page.lines().find(|line| line.starts_with("| bad"));
        let row = row.expect("a row").replace("\\|", "");
        assert_eq!(row.matches('|').count(), 6, "{row}");
    }

    #[test]
    fn many_runs_are_one_row() {
        let mut summary = Summary::default();
        for _ in 0..9 {
            summary.add(&run(vec![case("a", None)]));
            summary.add(&bad("contention"));
        }
        let page = summary.page(&[], "", &[]);
        let row = "| ✗ not as expected 9 of 18, ✓ as expected 9 of 18 | 18 of 27 |";
        assert!(page.contains(row), "{page}");
        assert_eq!(page.matches("### ").count(), RUNS_TOLD);
    }

    #[test]
    fn what_never_began_and_what_went_wrong_is_said() {
        let mut summary = Summary::default();
        let mut never = run(Vec::new());
        never.unfinished = vec!["a".into()];
        never.folder = Default::default();
        summary.add(&never);
        let page = summary.page(&["Docker is ```gone".to_owned()], "", &[]);
        assert!(
            page.starts_with("## fencepost: not all of it ran\n"),
            "{page}"
        );
        assert!(page.contains("```\nDocker is '''gone\n```"), "{page}");
        says(&page, &["| ? inconclusive | 0 of 1 |  | it never began |"]);
        assert_eq!(summary.worst_runs().count(), 0);
    }

    #[test]
    fn the_page_is_bounded() {
        let mut summary = Summary::default();
        let mut long = bad("long");
        long.cases[1].verdict.doubts = vec![Doubt::new(
            DoubtReason::Gap,
            "é".repeat(MOST_BYTES_OF_A_RUN),
        )];
        summary.add(&long);
        let page = summary.page(&[], "", &["x".repeat(MOST_BYTES)]);
        assert!(page.len() < 2 * MOST_BYTES_OF_A_RUN, "{}", page.len());
        assert!(page.ends_with("1 more are too long for this page.\n"));
    }
}
