//! What comes first: the verdict in a sentence, made from the record.

use super::RunPage;
use crate::model::{CaseResult, DoubtReason, Fence, Outcome, RunRecord};
use crate::report::lock;
use crate::report::mark::Mark;
use crate::report::markup::{cut, element, escaped};
use crate::report::terminal::finding_words;

/// Of more cases than this, each has a line of its own.
const CASES_IN_A_SENTENCE: usize = 3;
/// Of more cases than this, the first are told of.
const MOST_CASES: usize = 100;
/// Letters of what one thing comes to.
const LONGEST: usize = 2_000;

pub fn lead(page: &RunPage<'_>) -> String {
    let run = page.run;
    let mark = Mark::of(run.verdict());
    let mut text = format!(
        "<header data-scenario=\"{0}\" data-verdict=\"{1}\">\n<h1 class=\"verdict\">{0} {2}</h1>\n",
        escaped(&run.scenario),
        mark.name,
        mark.badge(),
    );
    text += &warnings(page);
    text += &sentence(run);
    if !page.about.is_empty() {
        let about = escaped(&cut(page.about, LONGEST));
        text += &element("p", &[("class", &"faint")], &about);
    }
    text + "\n</header>\n"
}

fn sentence(run: &RunRecord) -> String {
    let scenario = escaped(&run.scenario);
    let verdict = run.verdict();
    let clauses = run.cases.iter().take(MOST_CASES).map(clause);
    let clauses: Vec<String> = clauses.collect();
    if clauses.len() <= CASES_IN_A_SENTENCE {
        let sentences = clauses.iter().map(|clause| format!(" {clause}."));
        let sentences: String = sentences.collect();
        return format!("<p class=\"lead\">{scenario}: {verdict}.{sentences}</p>\n");
    }
    let as_expected = |case: &&CaseResult| case.verdict.outcome == Outcome::AsExpected;
    let good = run.cases.iter().filter(as_expected).count();
    let all = run.cases.len() + run.unfinished.len();
    let items = clauses.iter();
    let items = items.map(|clause| format!("<li>{clause}.</li>\n"));
    let more = run.cases.len() - clauses.len();
    let more = (more > 0).then(|| format!("<li>{more} more cases are in result.json.</li>\n"));
    format!(
        "<p class=\"lead\">{scenario}: {verdict}. {good} of {all} cases came out as expected.</p>\n\
         <ul>\n{}</ul>\n",
        items.chain(more).collect::<String>()
    )
}

/// What happened in one case: the end of its story, and how much of that there was.
fn clause(case: &CaseResult) -> String {
    let judgement = &case.judgement;
    let is_without_writes = case.notes.is_without_writes();
    let conditions = match (is_without_writes, case.fence) {
        (true, _) => format!("In {}", case.name),
        (false, Fence::On) => format!("With fencing ({})", case.name),
        (false, Fence::Off) => format!("Without fencing ({})", case.name),
    };
    let end = judgement
        .stories
        .first()
        .and_then(|story| story.steps.last());
    let counted = |count: usize, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    let violations = counted(judgement.violations.len(), "violation");
    let writes = judgement.counts.accepted_writes as usize;
    let happened = match end {
        Some(step) => format!("{} ({violations})", step.concrete),
        None if case.notes.never_played => "it is not played".to_owned(),
        None if is_without_writes => format!("{} locks live and die", locks(case)),
        None => format!(
            "the resource accepts {} ({violations})",
            counted(writes, "write")
        ),
    };
    let mut text = format!("{conditions}, {happened}");
    let unmet = case.verdict.findings.iter().filter(|found| !found.held);
    for finding in unmet {
        text += &format!(", {}", finding_words(finding));
    }
    if let Some(outcome) = lock::outcome(case) {
        text += &format!(", and {outcome}");
    }
    if case.verdict.outcome == Outcome::Inconclusive
        && let Some(doubt) = case.verdict.doubts.first()
    {
        let first_line = doubt.text.lines().next().unwrap_or_default();
        let certain = match doubt.reason {
            DoubtReason::NotOffered => "not offered",
            _ => "not certain",
        };
        text += &format!(", and this is {certain}: {first_line}");
    }
    escaped(&cut(&text, LONGEST))
}

/// How many there were in a case that only makes locks.
fn locks(case: &CaseResult) -> u64 {
    let keyspace = case.notes.load.iter().flat_map(|load| &load.keyspace);
    let made = keyspace.map(|keyspace| {
        let keys = keyspace.redis.as_ref().map_or(0, |redis| redis.keys);
        let leases = keyspace.etcd.as_ref().map_or(0, |etcd| etcd.leases);
        keys + leases
    });
    made.sum()
}

fn warnings(page: &RunPage<'_>) -> String {
    let run = page.run;
    let mut said: Vec<String> = page.ended_early.iter().cloned().collect();
    let unfinished = run.unfinished.iter().take(MOST_CASES);
    said.extend(unfinished.map(|case| format!("{case} did not finish")));
    let more = run.unfinished.len().saturating_sub(MOST_CASES);
    said.extend((more > 0).then(|| format!("{more} more did not finish")));
    if !run.settings.is_empty() {
        said.push(format!("with {}", run.settings.join(", ")));
    }
    if let Some(mutant) = &run.mutant {
        said.push(format!("with the defect `{mutant}` switched on"));
    }
    let lines = said.iter().map(|line| escaped(&cut(line, LONGEST)));
    let lines = lines.map(|line| element("p", &[], &line));
    let lines: String = lines.collect();
    match lines.is_empty() {
        true => lines,
        false => element("div", &[("class", &"warning"), ("role", &"note")], &lines) + "\n",
    }
}
