mod lock;

use super::{CaseEvidence, RunPage, page};
use crate::model::*;
use crate::report::made_up;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;

macro_rules! corpus {
    ($name:literal) => {
        rows(include_str!(concat!(
            "../../../../tests/corpus/pause-gt-ttl-unfenced/",
            $name
        )))
    };
}

fn rows<T: DeserializeOwned>(text: &str) -> Vec<T> {
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.collect()
}

/// Returns the log of the corpus with each row changed.
fn log(change: impl Fn(LogRow) -> LogRow) -> Log {
    let rows: Vec<LogRow> = corpus!("accepted.jsonl");
    Log::from_rows(rows.into_iter().map(change))
}

fn evidence() -> CaseEvidence {
    let record = CaseRecord {
        workers: vec!["a".to_owned(), "b".to_owned()],
        history: corpus!("history.jsonl"),
        log: log(|row| row),
        faults: corpus!("faults.jsonl"),
        locks: corpus!("locks.jsonl"),
        ..CaseRecord::default()
    };
    let held = record.history.iter().filter_map(|event| match &event.kind {
        EventKind::Acquired {
            key, token, owner, ..
        } => Some(Held {
            worker: event.worker.clone(),
            key: key.clone(),
            token: *token,
            owner: owner.clone(),
            from_ns: event.at_ns,
            to_ns: event.at_ns + 1_000_000_000,
            ended: true,
        }),
        _ => None,
    });
    let held = held.collect();
    CaseEvidence { record, held }
}

fn case(evidence: &CaseEvidence) -> CaseResult {
    let log = &evidence.record.log;
    let log: Vec<LogRow> = log.rows.iter().map(|row| log.written(row)).collect();
    let mut case = made_up::case("unfenced", None);
    case.fence = Fence::Off;
    case.faults = evidence.record.faults.clone();
    case.judgement.violations.push(Violation {
        kind: ViolationKind::StaleAccept,
        key: log[1].key.clone(),
        row: log[1].seq,
        against: Some(log[0].seq),
        at_ns: log[1].at_ns,
        workers: vec!["a".to_owned(), "b".to_owned()],
        detail: "a wrote with token 17 after 18".to_owned(),
        excuse: None,
    });
    let step = |at_ns, kind, concrete: &str| StoryStep {
        at_ns,
        kind,
        symbolic: String::new(),
        concrete: concrete.to_owned(),
    };
    case.judgement.stories.push(Story {
        key: log[1].key.clone(),
        row: log[1].seq,
        kinds: vec![ViolationKind::StaleAccept],
        title: "a stale write was accepted".to_owned(),
        steps: vec![
            step(evidence.held[0].from_ns, StepKind::Grant, "a is granted it"),
            step(log[0].at_ns, StepKind::Write, "b's write is accepted"),
            step(log[1].at_ns, StepKind::Write, "a's write is accepted"),
        ],
    });
    case
}

fn parts<'a>(run: &'a RunRecord, evidence: &'a BTreeMap<Name, CaseEvidence>) -> RunPage<'a> {
    RunPage {
        run,
        about: "what it is about",
        scenario: "name: contention\n",
        evidence,
        plots: &[],
        only: None,
        ended_early: None,
    }
}

fn shown(run: &RunRecord, evidence: BTreeMap<Name, CaseEvidence>) -> String {
    page(&parts(run, &evidence))
}

fn with_evidence() -> (RunRecord, BTreeMap<Name, CaseEvidence>) {
    let evidence = evidence();
    let run = made_up::run(vec![case(&evidence)]);
    (run, BTreeMap::from([("unfenced".into(), evidence)]))
}

#[test]
fn the_sentence_is_made_from_the_record() {
    let (mut run, evidence) = with_evidence();
    run.cases[0].verdict.outcome = Outcome::NotAsExpected;
    let missed = made_up::missed("accepted_writers", "3", 2);
    run.cases[0].verdict.findings.push(missed);
    let text = shown(&run, evidence);
    let sentence = "contention: not as expected. Without fencing (unfenced), a's write is accepted \
                    (1 violation), accepted writers 2 where 3 was expected.";
    assert!(text.contains(sentence), "{text}");
}

#[test]
fn every_step_of_a_story_leads_to_its_mark() {
    let (run, evidence) = with_evidence();
    let text = shown(&run, evidence);
    let mut links = text.split("<a href=\"#").skip(1);
    for about in [
        "a holds account-42",
        "accepts b's write",
        "accepts a's write",
    ] {
        let id = links.next().and_then(|link| link.split('"').next());
        let id = id.expect("a link");
        let mark = text.split(&format!("id=\"{id}\"")).nth(1);
        let mark = mark.expect("a mark").split("</title>").next();
        assert!(mark.is_some_and(|mark| mark.contains(about)), "{mark:?}");
    }
}

#[test]
fn a_drawing_is_bounded_and_says_what_it_leaves_out() {
    let (mut run, mut all) = with_evidence();
    let evidence = all.get_mut("unfenced").unwrap();
    let event = evidence.record.history[0].clone();
    let many = (0..200_000).map(|n| Event {
        at_ns: n * 10_000,
        ..event.clone()
    });
    evidence.record.history.extend(many);
    let all_rows = evidence.record.history.len()
        + evidence.record.log.len()
        + evidence.record.locks.len()
        + evidence.record.faults.len();
    run.cases[0].judgement.violations[0].detail = "long ".repeat(50);
    let text = shown(&run, all);
    assert!(text.len() < 400_000, "{} bytes", text.len());
    assert!(text.contains("class=\"mark a-pair\""), "the pair is drawn");
    let said = text.split(" rows are drawn, ").nth(1).expect("it is said");
    let left_out: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!((199_000..all_rows).contains(&left_out), "{left_out}");
}

/// Returns a moment that every drawing shows.
fn evidence_at_ns(all: &BTreeMap<Name, CaseEvidence>) -> u64 {
    all["unfenced"].record.log.rows[0].at_ns
}

/// Puts this text in the place of every name of a record.
fn make_hostile(evidence: &mut CaseEvidence, hostile: &str) {
    evidence.record.log = log(|row| LogRow {
        owner: Some(hostile.to_owned()),
        key: hostile.to_owned(),
        value: Some(RowValue::Text(hostile.to_owned())),
        ..row
    });
    for event in &mut evidence.record.history {
        event.worker = hostile.to_owned();
    }
    evidence.record.history.push(Event {
        kind: EventKind::Failed {
            round: 1,
            during: Step::Write,
            error: hostile.to_owned(),
        },
        ..evidence.record.history[0].clone()
    });
    for held in &mut evidence.held {
        for field in [&mut held.worker, &mut held.key, &mut held.owner] {
            *field = hostile.to_owned();
        }
    }
    for row in &mut evidence.record.locks {
        (row.node, row.key) = (hostile.to_owned(), hostile.to_owned());
        row.owner = Some(hostile.to_owned());
    }
    evidence.record.workers = vec![hostile.to_owned()];
    for row in &mut evidence.record.faults {
        (row.target, row.detail) = (hostile.to_owned(), hostile.to_owned());
    }
    evidence.record.resource = Some(hostile.to_owned());
}

#[test]
fn no_name_becomes_markup() {
    let hostile = "\"><script>x</script>'&]]>\u{1b}[31m\u{9b}\u{202e}\u{2066}\u{2028}\n";
    let (mut run, mut all) = with_evidence();
    run.settings = vec![hostile.to_owned()];
    run.mutant = Some(hostile.to_owned());
    run.environment
        .insert(hostile.to_owned(), hostile.to_owned());
    let case = &mut run.cases[0];
    case.verdict.doubts = vec![Doubt::new(DoubtReason::Gap, hostile)];
    case.verdict.findings.push(Finding {
        found: Found::Timed(hostile.to_owned()),
        ..made_up::missed(hostile, hostile, 0)
    });
    case.notes.gaps = vec![Gap::from(hostile.to_owned() + "gap")];
    case.notes.workers = vec![hostile.to_owned()];
    let value = RowValue::Text(hostile.to_owned());
    case.notes.values.insert(hostile.to_owned(), value);
    case.notes
        .versions
        .insert(hostile.to_owned(), hostile.to_owned());
    let at_ns = evidence_at_ns(&all);
    let judgement = &mut case.judgement;
    judgement.violations[0].detail = hostile.to_owned();
    judgement.violations[0].key = hostile.to_owned();
    let kind = ViolationKind::GrantedWhileHeld;
    for violation in [made_up::violation(kind), made_up::excused(kind, hostile)] {
        let excused = Violation {
            key: hostile.to_owned(),
            workers: vec![hostile.to_owned(); 2],
            detail: hostile.to_owned(),
            at_ns,
            ..violation
        };
        judgement.excused.push(excused);
    }
    let unchecked = Kept::NotChecked(hostile.to_owned());
    judgement.promises.insert(Promise::Exclusion, unchecked);
    judgement.overlaps.push(Overlap {
        key: hostile.to_owned(),
        first: hostile.to_owned(),
        second: hostile.to_owned(),
        from_ns: at_ns,
        to_ns: at_ns + 1,
        definite: true,
    });
    let writer = (hostile.to_owned(), None);
    judgement.last_writers.insert(hostile.to_owned(), writer);
    let story = &mut judgement.stories[0];
    (story.key, story.title) = (hostile.to_owned(), hostile.to_owned());
    story.steps[0].concrete = hostile.to_owned();
    case.faults[0].target = hostile.to_owned();
    let mut evidence = all.remove("unfenced").unwrap();
    make_hostile(&mut evidence, hostile);
    let text = shown(&run, BTreeMap::from([("unfenced".into(), evidence)]));
    assert!(!text.contains("<script>x"), "escaped everywhere");
    assert_eq!(text.matches("<script>").count(), 1, "the page's own");
    let is_unseen = |c: char| {
        !matches!(c, '\n' | '\t')
            && (c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
    };
    assert!(!text.contains(is_unseen), "nothing of it is unseen");
    assert!(text.contains("a-break"), "it is drawn");
}

#[test]
fn what_keeps_a_verdict_from_being_certain_is_said() {
    let (mut run, all) = with_evidence();
    run.cases[0].verdict.outcome = Outcome::Inconclusive;
    run.cases[0].verdict.doubts = vec![Doubt::new(DoubtReason::Gap, "the pause was not proven")];
    run.unfinished = vec!["fenced".into()];
    run.seed = None;
    let text = page(&RunPage {
        ended_early: Some("the run ended before it had judged fenced".to_owned()),
        ..parts(&run, &all)
    });
    made_up::says(
        &text,
        &[
            "data-verdict=\"inconclusive\"",
            "not certain: the pause was not proven",
            "fenced did not finish",
            "the run ended before it had judged fenced",
        ],
    );
    assert!(!text.contains("--seed"), "an unknown seed is not told");
}

#[test]
fn the_command_is_exact() {
    let (mut run, all) = with_evidence();
    run.seed = Some(7);
    run.settings = vec!["lock.ttl=5s".to_owned(), "about=it's".to_owned()];
    let mut parts = RunPage {
        only: Some("unfenced"),
        ..parts(&run, &all)
    };
    let typed = "fencepost run contention --seed 7 --case unfenced --set lock.ttl=5s \
                 --set 'about=it'\\''s'";
    assert!(page(&parts).contains(&format!("<pre data-command=\"run\">{typed}</pre>")));
    parts.scenario = "# Written by: fencepost contend --redis localhost:1\nname: contend\n";
    let typed = "fencepost contend --redis localhost:1";
    let text = page(&parts);
    assert!(text.contains(&format!("<pre data-command=\"run\">{typed}</pre>")));
    assert!(!text.contains("data-command=\"own\""), "{text}");
}

#[test]
fn a_run_on_processes_is_seen_again_on_processes_and_from_its_own_text() {
    let (mut run, all) = with_evidence();
    let runtime = ("runtime".to_owned(), "local".to_owned());
    run.environment.extend([runtime]);
    let text = shown(&run, all);
    let typed = "fencepost run contention --runtime local --seed 1";
    assert!(text.contains(&format!("<pre data-command=\"run\">{typed}</pre>")));
    let own = "fencepost run results/contention/1/scenario.yml --runtime local --seed 1";
    assert!(text.contains(&format!("<pre data-command=\"own\">{own}</pre>")));
}

#[test]
fn a_load_shows_its_tables_and_plots() {
    let run = made_up::run(vec![made_up::contended("spin", &[5, 50], 1.0)]);
    let plots = [("latency.svg".to_owned(), "<svg>drawn</svg>".to_owned())];
    let text = page(&RunPage {
        plots: &plots,
        ..parts(&run, &BTreeMap::new())
    });
    assert!(text.contains("<figure class=\"wide plot\" data-plot=\"latency.svg\"><svg>drawn"));
    assert!(text.contains("acquire p50"), "{text}");
}

#[test]
fn times_that_no_clock_shows_make_a_page_all_the_same() {
    let wall_ns = 1_794_000_000_000_000_000;
    for odd_ns in [0, 1, wall_ns, u64::MAX - 1, u64::MAX] {
        for is_long in [false, true] {
            let (mut run, mut all) = with_evidence();
            let evidence = all.get_mut("unfenced").unwrap();
            evidence.record.history[0].at_ns = odd_ns;
            evidence.record.log.rows[1].at_ns = odd_ns;
            evidence.record.locks[0].at_ns = odd_ns;
            evidence.record.faults[0].at_ns = odd_ns;
            evidence.held[0].to_ns = odd_ns;
            if is_long {
                let more = vec![evidence.record.history[0].clone(); 2_000];
                evidence.record.history.extend(more);
            }
            let case = &mut run.cases[0];
            case.started_ns = odd_ns;
            case.faults = evidence.record.faults.clone();
            case.judgement.stories[0].steps[2].at_ns = odd_ns;
            case.judgement.overlaps.push(Overlap {
                key: "account-42".to_owned(),
                first: "a".to_owned(),
                second: "b".to_owned(),
                from_ns: odd_ns,
                to_ns: odd_ns / 2,
                definite: true,
            });
            let told = shown(&run, all);
            assert!(told.contains("class=\"lanes-drawn\""), "{odd_ns}");
        }
    }
}

#[test]
fn a_fault_on_one_link_of_many_is_drawn_too() {
    let (mut run, mut all) = with_evidence();
    let evidence = all.get_mut("unfenced").unwrap();
    let fault = evidence.record.faults[0].clone();
    let links = (1..=9).map(|link| FaultRow {
        id: 100 + link,
        target: format!("a -> redis-{link}"),
        fault: FaultKind::Partition,
        stage: FaultStage::Requested,
        ..fault.clone()
    });
    evidence.record.faults.extend(links);
    run.cases[0].faults = evidence.record.faults.clone();
    let text = shown(&run, all);
    for link in 1..=9 {
        let title = format!("of a -&gt; redis-{link}: requested");
        assert!(text.contains(&title), "{title}");
    }
    assert!(text.contains("3 further links"), "{text}");
}
