//! The beginning of the page: the verdict in one sentence, made from the record.

use super::*;

/// With more cases than this, each has its own line.
const CASES_IN_A_SENTENCE: usize = 3;
/// The most cases that are described.
const MOST_CASES: usize = 100;
/// The most letters of one sentence.
const LONGEST: usize = 2_000;

pub fn lead(page: &RunPage<'_>) -> Markup {
    let run = page.run;
    let mark = Mark::of(run.verdict());
    html! {
        header data-scenario=(run.scenario) data-verdict=(mark.name) {
            h1.verdict { (run.scenario) " " (mark.badge()) }
            (warnings(page))
            (sentence(run))
            @if !page.about.is_empty() { p.faint { (cut(page.about, LONGEST)) } }
        }
    }
}

fn sentence(run: &RunRecord) -> Markup {
    let clauses: Vec<String> = run.cases.iter().take(MOST_CASES).map(clause).collect();
    let (good, all) = (
        run.cases_as_expected(),
        run.cases.len() + run.unfinished.len(),
    );
    let more = run.cases.len() - clauses.len();
    let is_short = clauses.len() <= CASES_IN_A_SENTENCE;
    html! {
        p.lead {
            (run.scenario) ": " (run.verdict()) "."
            @if is_short { @for clause in &clauses { " " (clause) "." } }
            @else { " " (good) " of " (all) " cases came out as expected." }
        }
        @if !is_short {
            ul {
                @for clause in &clauses { li { (clause) "." } }
                @if more > 0 { li { (more) " more cases are in result.json." } }
            }
        }
    }
}

/// Describes what happened in one case: the end of its story, and how many violations there were.
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
        text += &format!(", {}", terminal::finding_words(finding));
    }
    if let Some(outcome) = lock::outcome(case) {
        text += &format!(", and {outcome}");
    }
    if case.verdict.outcome == Outcome::Inconclusive
        && let Some(doubt) = case.verdict.doubts.first()
    {
        let first_line = doubt.text.lines().next().unwrap_or_default();
        text += &format!(", and this is {}: {first_line}", lock::certainty(doubt));
    }
    cut(&text, LONGEST).into_owned()
}

/// Returns the number of locks in a case that only makes locks.
fn locks(case: &CaseResult) -> u64 {
    let keyspace = case.notes.load.iter().flat_map(|load| &load.keyspace);
    let made = keyspace.map(|keyspace| {
        let keys = keyspace.redis.as_ref().map_or(0, |redis| redis.keys);
        let leases = keyspace.etcd.as_ref().map_or(0, |etcd| etcd.leases);
        keys + leases
    });
    made.sum()
}

fn warnings(page: &RunPage<'_>) -> Markup {
    let run = page.run;
    let mut said: Vec<String> = page.ended_early.iter().cloned().collect();
    let unfinished = run.unfinished.iter().take(MOST_CASES);
    said.extend(unfinished.map(|case| format!("{case} did not finish")));
    let more = run.unfinished.len().saturating_sub(MOST_CASES);
    said.extend((more > 0).then(|| format!("{more} more did not finish")));
    said.extend(terminal::overrides(run));
    html! {
        @if !said.is_empty() {
            div.warning role="note" { @for line in &said { p { (cut(line, LONGEST)) } } }
        }
    }
}
