//! JUnit XML for CI systems: a suite for each run, with a test for each case. Not as expected
//! is a failure; inconclusive is an error.

use super::markup::escaped;
use super::terminal::{case_text, missed};
use super::*;

/// A run as a suite of a document.
pub struct Suite {
    name: String,
    properties: Vec<(String, String)>,
    tests: Vec<Test>,
}

struct Test {
    name: String,
    took_ms: Option<u64>,
    /// The element, type and message of a failure or error, if there is one.
    wrong: Option<(&'static str, &'static str, String)>,
    told: String,
}

pub fn suite(run: &RunRecord) -> Suite {
    let unfinished = match run.began() {
        true => "the run ended before it had judged this case",
        false => "the command ended before this run began",
    };
    let unfinished = run.unfinished.iter().map(|case| Test {
        name: case.to_string(),
        took_ms: None,
        wrong: Some(("error", "unfinished", unfinished.to_owned())),
        told: String::new(),
    });
    Suite {
        name: run.scenario.to_string(),
        properties: properties(run),
        tests: run.cases.iter().map(Test::of).chain(unfinished).collect(),
    }
}

/// Returns the suite of a scenario whose cases are unknown: one test represents all of them.
pub fn invalid(scenario: &str, reason: &str) -> Suite {
    let test = Test {
        name: scenario.to_owned(),
        took_ms: None,
        wrong: Some(("error", "invalid", reason.to_owned())),
        told: reason.to_owned(),
    };
    Suite {
        name: scenario.to_owned(),
        properties: Vec::new(),
        tests: vec![test],
    }
}

/// An answer that is a test of its own and no case: its name, the outcome with a message, and a text.
pub struct Answer {
    pub name: String,
    pub outcome: Outcome,
    pub message: String,
    pub told: String,
}

/// Returns a suite of plain answers.
pub fn answers(name: &str, answers: impl IntoIterator<Item = Answer>) -> Suite {
    let tests = answers.into_iter().map(|answer| Test {
        name: answer.name,
        took_ms: None,
        wrong: match answer.outcome {
            Outcome::AsExpected => None,
            Outcome::NotAsExpected => Some(("failure", "no", answer.message)),
            Outcome::Inconclusive => Some(("error", "unknown", answer.message)),
        },
        told: answer.told,
    });
    Suite {
        name: name.to_owned(),
        properties: Vec::new(),
        tests: tests.collect(),
    }
}

/// Returns the document of all runs of one command.
pub fn document(suites: &[Suite]) -> String {
    let counts = counts(suites.iter().flat_map(|suite| &suite.tests));
    let suites: String = suites.iter().map(Suite::text).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"fencepost\"{counts}>\n{suites}</testsuites>\n"
    )
}

fn counts<'a>(tests: impl Iterator<Item = &'a Test> + Clone) -> String {
    let wrong = |element: &str| {
        let wrong = tests.clone().filter_map(|test| test.wrong.as_ref());
        wrong.filter(|(wrong, ..)| *wrong == element).count()
    };
    let took_ms = tests.clone().filter_map(|test| test.took_ms);
    let (failures, errors) = (wrong("failure"), wrong("error"));
    let time = time(took_ms.reduce(|sum, ms| sum + ms));
    let count = tests.clone().count();
    format!(" tests=\"{count}\" failures=\"{failures}\" errors=\"{errors}\"{time}")
}

impl Suite {
    fn text(&self) -> String {
        let (name, counts) = (attribute(&self.name), counts(self.tests.iter()));
        let mut text = format!("  <testsuite name=\"{name}\"{counts}>\n");
        if !self.properties.is_empty() {
            text += "    <properties>\n";
            for (name, value) in &self.properties {
                let (name, value) = (attribute(name), attribute(&one_line(value)));
                let _ = writeln!(text, "      <property name=\"{name}\" value=\"{value}\"/>");
            }
            text += "    </properties>\n";
        }
        text.extend(self.tests.iter().map(|test| test.text(&name)));
        text + "  </testsuite>\n"
    }
}

impl Test {
    fn of(case: &CaseResult) -> Test {
        let is_broken = lock::outcome(case) == Some(LockOutcome::Broken);
        let mut wrong = match case.verdict.outcome {
            Outcome::AsExpected => None,
            Outcome::NotAsExpected => Some(("failure", "not_as_expected", missed(case))),
            Outcome::Inconclusive => Some(("error", "inconclusive", doubts(case))),
        };
        if let Some((_, _, message)) = wrong.as_mut().filter(|_| is_broken) {
            let separator = if message.is_empty() { "" } else { "; " };
            *message += &format!("{separator}{}", LockOutcome::Broken);
        }
        // A scenario may expect a lock that breaks its promises; the text says which ones.
        let is_told = wrong.is_some() || is_broken;
        Test {
            name: case.name.to_string(),
            took_ms: took_ms(case),
            wrong,
            told: if is_told {
                case_text(case)
            } else {
                String::new()
            },
        }
    }

    fn text(&self, class: &str) -> String {
        let (name, time, told) = (
            attribute(&self.name),
            time(self.took_ms),
            escaped(&self.told),
        );
        let open = format!("    <testcase classname=\"{class}\" name=\"{name}\"{time}");
        let inner = match &self.wrong {
            None if told.is_empty() => return format!("{open}/>\n"),
            None => format!("<system-out>{told}</system-out>"),
            Some((element, kind, message)) => {
                let message = attribute(&one_line(message));
                let wrong = format!("<{element} type=\"{kind}\" message=\"{message}\"");
                match told.is_empty() {
                    true => format!("{wrong}/>"),
                    false => format!("{wrong}>{told}</{element}>"),
                }
            }
        };
        format!("{open}>\n      {inner}\n    </testcase>\n")
    }
}

/// Returns the settings of a run, and where it ran.
fn properties(run: &RunRecord) -> Vec<(String, String)> {
    let mut all = vec![
        ("scenario_hash".to_owned(), run.scenario_hash.clone()),
        ("settings".to_owned(), run.settings.join(", ")),
    ];
    let seed = run.seed.iter();
    all.extend(seed.map(|seed| ("seed".to_owned(), seed.to_string())));
    let mutant = run.mutant.iter().cloned();
    all.extend(mutant.map(|mutant| ("mutant".to_owned(), mutant)));
    if run.began() {
        all.push(("folder".to_owned(), run.folder.display().to_string()));
    }
    let locks = run.cases.iter().filter_map(|case| {
        let outcome = lock::outcome(case)?;
        Some((format!("lock {}", case.name), lock::name(outcome)))
    });
    all.extend(locks);
    let versions = run.cases.iter().flat_map(|case| &case.notes.versions);
    let versions = versions.map(|(node, version)| (format!("version {node}"), version.clone()));
    let environment = run.environment.clone().into_iter().chain(versions);
    let mut environment: Vec<_> = environment.collect();
    environment.sort();
    // Cases of one run usually have the same servers.
    environment.dedup();
    all.extend(environment);
    all
}

/// Returns the total time of a case; `None` if it was not measured.
fn took_ms(case: &CaseResult) -> Option<u64> {
    let measured = |name: &str| case.notes.measurements.get(name).copied();
    Some(measured("scenario_ms")? + measured("overhead_ms")?)
}

fn time(ms: Option<u64>) -> String {
    let seconds = ms.map(|ms| format!(" time=\"{}.{:03}\"", ms / 1_000, ms % 1_000));
    seconds.unwrap_or_default()
}

/// Returns a text as the value of an attribute, which cannot contain lines.
fn attribute(words: &str) -> String {
    escaped(&shown::line(words))
}

/// Replaces line breaks by blanks, because readers of an attribute do that anyway.
fn one_line(words: &str) -> String {
    joined(words.split_whitespace(), " ")
}

fn doubts(case: &CaseResult) -> String {
    let doubts = case.verdict.doubts.iter().map(|doubt| doubt.text.as_str());
    joined(doubts, "; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::made_up::{self, case, lock_case, run, says};

    fn judged(name: &str, outcome: Outcome) -> CaseResult {
        let mut judged = case(name, None);
        judged.verdict.outcome = outcome;
        for (phase, ms) in [("scenario_ms", 3_000), ("overhead_ms", 250)] {
            judged.notes.measurements.insert(phase.to_owned(), ms);
        }
        judged
    }

    #[test]
    fn a_case_is_a_test_and_only_what_is_not_as_expected_fails() {
        let mut bad = judged("fenced", Outcome::NotAsExpected);
        bad.verdict.findings = vec![made_up::missed("stale_rejections", "1..", 0)];
        let mut unsure = judged("unsure", Outcome::Inconclusive);
        unsure.verdict.doubts = vec![Doubt::new(DoubtReason::Gap, "nothing proves\nthe pause")];
        let mut all = run(vec![judged("good", Outcome::AsExpected), bad, unsure]);
        all.unfinished = vec!["late".into()];
        let text = document(&[suite(&all)]);
        let expected = [
            "<testsuites name=\"fencepost\" tests=\"4\" failures=\"1\" errors=\"2\" time=\"9.750\">",
            "<testsuite name=\"contention\" tests=\"4\" failures=\"1\" errors=\"2\" time=\"9.750\">",
            "<property name=\"seed\" value=\"1\"/>",
            "<testcase classname=\"contention\" name=\"good\" time=\"3.250\"/>",
            "name=\"fenced\" time=\"3.250\">",
            "<failure type=\"not_as_expected\" message=\"stale rejections 0 where 1.. was expected\">",
            "<error type=\"inconclusive\" message=\"nothing proves the pause\">",
            "<error type=\"unfinished\" message=\"the run ended before it had judged this case\"/>",
        ];
        says(&text, &expected);
    }

    #[test]
    fn a_lock_that_broke_its_promises_is_told_of_whatever_was_expected() {
        let mut missed = lock_case("missed", Kept::Broken);
        missed.verdict.outcome = Outcome::NotAsExpected;
        let good = lock_case("good", Kept::Kept);
        let all = run(vec![lock_case("expected", Kept::Broken), good, missed]);
        let text = document(&[suite(&all)]);
        says(
            &text,
            &[
                "<property name=\"lock expected\" value=\"broken\"/>",
                "<property name=\"lock good\" value=\"kept\"/>",
                "<testcase classname=\"contention\" name=\"good\"/>",
                "name=\"expected\">\n      <system-out>expected (fence on): as expected, the lock broke its promises\n  broken: exclusion</system-out>",
                "<failure type=\"not_as_expected\" message=\"the lock broke its promises\">",
            ],
        );
    }

    #[test]
    fn what_was_not_measured_has_no_time() {
        let text = document(&[suite(&run(vec![case("a", None)]))]);
        assert!(!text.contains("time="), "{text}");
    }

    /// Control characters are not allowed in XML, not even escaped.
    #[test]
    fn nothing_out_of_a_record_breaks_the_document() {
        let hostile = "\"<b>]]>&\u{1b}[31m\u{1}\u{85}\u{202e}\u{fffe}\r\nx";
        let mut bad = judged("bad", Outcome::Inconclusive);
        bad.verdict.doubts = vec![Doubt::new(DoubtReason::Gap, hostile)];
        let mut all = run(vec![bad]);
        all.settings = vec![hostile.to_owned()];
        all.mutant = Some(hostile.to_owned());
        all.folder = hostile.into();
        all.environment
            .insert(hostile.to_owned(), hostile.to_owned());
        let text = document(&[suite(&all), invalid(hostile, hostile)]);
        let is_bad =
            |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202e}' | '\u{fffe}'));
        assert!(!text.contains(is_bad), "{text:?}");
        assert!(!text.contains("]]>") && !text.contains("<b>"), "{text}");
        let rest: String = text.split("&amp;").collect();
        let rest = ["&lt;", "&gt;", "&quot;"]
            .iter()
            .fold(rest, |rest, entity| rest.replace(entity, ""));
        assert!(!rest.contains('&'), "{rest}");
    }

    #[test]
    fn a_run_that_never_began_says_so() {
        let mut never = run(Vec::new());
        never.unfinished = vec!["a".into()];
        never.folder = Default::default();
        let text = document(&[suite(&never)]);
        assert!(text.contains("the command ended before this run began"));
        assert!(!text.contains("\"folder\""), "{text}");
    }
}
