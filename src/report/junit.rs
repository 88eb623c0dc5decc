//! JUnit XML, as CI systems read it: a suite for each run, and in it a test for each
//! case. Not as expected is a failure; what nobody can tell is an error.

use super::markup::escaped;
use super::terminal::{case_text, missed};
use super::{lock, shown};
use crate::model::{CaseResult, LockOutcome, Outcome, RunRecord};
use std::fmt::Write;

/// A run as it stands in a document.
pub struct Suite {
    tests: usize,
    failures: usize,
    errors: usize,
    took_ms: Option<u64>,
    text: String,
}

pub fn suite(run: &RunRecord) -> Suite {
    let outcomes = |wanted: Outcome| {
        let outcomes = run.cases.iter().map(|case| case.verdict.outcome);
        outcomes.filter(|outcome| *outcome == wanted).count()
    };
    let mut suite = Suite {
        tests: run.cases.len() + run.unfinished.len(),
        failures: outcomes(Outcome::NotAsExpected),
        errors: outcomes(Outcome::Inconclusive) + run.unfinished.len(),
        took_ms: added(run.cases.iter().map(took_ms)),
        text: String::new(),
    };
    let (name, counts) = (attribute(&run.scenario), suite.counts());
    let text = &mut suite.text;
    let _ = writeln!(text, "  <testsuite name=\"{name}\"{counts}>");
    text.push_str("    <properties>\n");
    for (name, value) in properties(run) {
        let (name, value) = (attribute(&name), attribute(&one_line(&value)));
        let _ = writeln!(text, "      <property name=\"{name}\" value=\"{value}\"/>");
    }
    text.push_str("    </properties>\n");
    for case in &run.cases {
        tested(text, run, case);
    }
    for case in &run.unfinished {
        let (class, name) = (attribute(&run.scenario), attribute(case));
        let _ = writeln!(
            text,
            "    <testcase classname=\"{class}\" name=\"{name}\">\n      \
             <error type=\"unfinished\" message=\"{}\"/>\n    </testcase>",
            match run.began() {
                true => "the run ended before it had judged this case",
                false => "the command ended before this run began",
            }
        );
    }
    text.push_str("  </testsuite>\n");
    suite
}

/// A scenario of which not even the cases are known: one test that stands for all of them.
pub fn invalid(scenario: &str, reason: &str) -> Suite {
    let mut suite = Suite {
        tests: 1,
        failures: 0,
        errors: 1,
        took_ms: None,
        text: String::new(),
    };
    let (name, counts) = (attribute(scenario), suite.counts());
    let (message, told) = (attribute(&one_line(reason)), escaped(reason));
    suite.text = format!(
        "  <testsuite name=\"{name}\"{counts}>\n    \
         <testcase classname=\"{name}\" name=\"{name}\">\n      \
         <error type=\"invalid\" message=\"{message}\">{told}</error>\n    \
         </testcase>\n  </testsuite>\n"
    );
    suite
}

/// All runs of one command.
pub fn document(suites: &[Suite]) -> String {
    let sum = |of: fn(&Suite) -> usize| suites.iter().map(of).sum();
    let all = Suite {
        tests: sum(|suite| suite.tests),
        failures: sum(|suite| suite.failures),
        errors: sum(|suite| suite.errors),
        took_ms: added(suites.iter().map(|suite| suite.took_ms)),
        text: String::new(),
    };
    let suites: String = suites.iter().map(|suite| suite.text.as_str()).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"fencepost\"{}>\n{suites}</testsuites>\n",
        all.counts()
    )
}

impl Suite {
    fn counts(&self) -> String {
        let Suite {
            tests,
            failures,
            errors,
            took_ms,
            ..
        } = self;
        let time = time(*took_ms);
        format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\"{time}")
    }
}

fn tested(text: &mut String, run: &RunRecord, case: &CaseResult) {
    let (class, name) = (attribute(&run.scenario), attribute(&case.name));
    let time = time(took_ms(case));
    let open = format!("    <testcase classname=\"{class}\" name=\"{name}\"{time}");
    let is_broken = lock::outcome(case) == Some(LockOutcome::Broken);
    let (element, kind, mut message) = match case.verdict.outcome {
        // A scenario may expect a lock that breaks its promises; whoever reads on finds out which.
        Outcome::AsExpected if is_broken => {
            let told = escaped(&case_text(case));
            let _ = writeln!(
                text,
                "{open}>\n      <system-out>{told}</system-out>\n    </testcase>"
            );
            return;
        }
        Outcome::AsExpected => {
            let _ = writeln!(text, "{open}/>");
            return;
        }
        Outcome::NotAsExpected => ("failure", "not_as_expected", missed(case)),
        Outcome::Inconclusive => ("error", "inconclusive", doubts(case)),
    };
    if is_broken {
        let separator = if message.is_empty() { "" } else { "; " };
        message = format!("{message}{separator}{}", LockOutcome::Broken);
    }
    let (message, told) = (attribute(&one_line(&message)), escaped(&case_text(case)));
    let _ = writeln!(
        text,
        "{open}>\n      <{element} type=\"{kind}\" message=\"{message}\">{told}</{element}>\n    </testcase>"
    );
}

/// What was asked for, and where it ran.
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
        Some((
            format!("lock {}", case.name),
            lock::name(outcome).to_owned(),
        ))
    });
    all.extend(locks);
    let versions = run.cases.iter().flat_map(|case| &case.notes.versions);
    let versions = versions.map(|(node, version)| (format!("version {node}"), version.clone()));
    let environment = run.environment.clone().into_iter().chain(versions);
    let mut environment: Vec<_> = environment.collect();
    environment.sort();
    // Cases of one run mostly have the same servers.
    environment.dedup();
    all.extend(environment);
    all
}

/// Everything that a case took; `None` where nobody measured it.
fn took_ms(case: &CaseResult) -> Option<u64> {
    let measured = |name: &str| case.notes.measurements.get(name).copied();
    Some(measured("scenario_ms")? + measured("overhead_ms")?)
}

fn added(parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.flatten().reduce(|sum, part| sum + part)
}

fn time(ms: Option<u64>) -> String {
    let seconds = ms.map(|ms| format!(" time=\"{}.{:03}\"", ms / 1_000, ms % 1_000));
    seconds.unwrap_or_default()
}

/// As the value of an attribute, in which lines mean nothing.
fn attribute(words: &str) -> String {
    escaped(&shown::line(words))
}

/// A line break in an attribute is a blank to whoever reads it.
fn one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn doubts(case: &CaseResult) -> String {
    let doubts: Vec<&str> = case
        .verdict
        .doubts
        .iter()
        .map(|doubt| doubt.text.as_str())
        .collect();
    doubts.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CaseVerdict, Doubt, DoubtReason, Finding, Found, Kept};
    use crate::report::made_up::{case, lock_case, run};

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
        bad.verdict = CaseVerdict {
            findings: vec![Finding {
                what: "stale_rejections".to_owned(),
                expected: "1..".to_owned(),
                held: false,
                found: Found::Count(0),
                outcome: Outcome::NotAsExpected,
            }],
            ..bad.verdict
        };
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
        for part in expected {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
    }

    #[test]
    fn a_lock_that_broke_its_promises_is_told_of_whatever_was_expected() {
        let mut missed = lock_case("missed", Kept::Broken);
        missed.verdict.outcome = Outcome::NotAsExpected;
        let good = lock_case("good", Kept::Kept);
        let all = run(vec![lock_case("expected", Kept::Broken), good, missed]);
        let text = document(&[suite(&all)]);
        for part in [
            "<property name=\"lock expected\" value=\"broken\"/>",
            "<property name=\"lock good\" value=\"kept\"/>",
            "<testcase classname=\"contention\" name=\"good\"/>",
            "name=\"expected\">\n      <system-out>expected (fence on): as expected, the lock broke its promises\n  broken: exclusion</system-out>",
            "<failure type=\"not_as_expected\" message=\"the lock broke its promises\">",
        ] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
    }

    #[test]
    fn what_was_not_measured_has_no_time() {
        let text = document(&[suite(&run(vec![case("a", None)]))]);
        assert!(!text.contains("time="), "{text}");
    }

    /// Control characters are not allowed in XML, however they are written.
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
