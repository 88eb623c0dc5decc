mod lock;

use super::*;
use crate::report::made_up::{PLAIN, case, contended, run, says};

fn result(run: &RunRecord) -> Value {
    json!(ResultDocument::of(run))
}

fn recorded(run: &RunRecord) -> ResultDocument {
    read_value(&result(run))
}

fn read_value(value: &Value) -> ResultDocument {
    document::read(value.to_string().as_bytes()).expect("a result")
}

fn plain(cases: &[(&str, Outcome)]) -> RunRecord {
    let cases = cases.iter().map(|(name, outcome)| {
        let mut case = case(name, None);
        case.verdict.outcome = *outcome;
        case.determined = true;
        case
    });
    run(cases.collect())
}

fn between(old: &RunRecord, new: &RunRecord) -> Difference {
    compare(&recorded(old), &recorded(new), 1.5).expect("one scenario")
}

fn load(change: impl Fn(&mut CaseResult)) -> Difference {
    let old = run(vec![contended("queue", &[50, 200], 1.0)]);
    let mut case = contended("queue", &[50, 200], 1.0);
    change(&mut case);
    between(&old, &run(vec![case]))
}

fn marked(difference: &Difference) -> Vec<&str> {
    difference.beyond().map(|one| one.what.as_str()).collect()
}

#[test]
fn a_run_is_the_same_as_itself() {
    let run = plain(&[("fenced", Outcome::AsExpected)]);
    let difference = between(&run, &run);
    assert!(!difference.verdict_changed);
    let changes = [
        &difference.conditions,
        &difference.findings,
        &difference.environment,
    ];
    assert!(changes.iter().all(|changes| changes.is_empty()));
    let text = screen(&difference, &PLAIN);
    assert!(
        text.starts_with("contention: the same verdicts\n"),
        "{text}"
    );
}

#[test]
fn another_verdict_a_case_less_and_one_that_did_not_finish_are_changes() {
    let old = plain(&[
        ("fenced", Outcome::AsExpected),
        ("unfenced", Outcome::AsExpected),
    ]);
    let mut new = plain(&[("fenced", Outcome::NotAsExpected)]);
    let difference = between(&old, &new);
    assert!(difference.verdict_changed);
    let standings: Vec<(CaseStatus, CaseStatus)> = difference
        .verdicts
        .iter()
        .map(|verdict| (verdict.old, verdict.new))
        .collect();
    let expected = [
        (
            CaseStatus::Judged(Outcome::AsExpected),
            CaseStatus::Judged(Outcome::NotAsExpected),
        ),
        (CaseStatus::Judged(Outcome::AsExpected), CaseStatus::Absent),
    ];
    assert_eq!(standings, expected);
    new.unfinished = vec!["unfenced".into()];
    let text = screen(&between(&old, &new), &PLAIN);
    says(
        &text,
        &[
            "! fenced    as expected  not as expected",
            "! unfenced  as expected       unfinished",
            "the new run ended before it had judged unfenced",
        ],
    );
}

#[test]
fn different_scenarios_are_not_comparable() {
    let old = plain(&[("fenced", Outcome::AsExpected)]);
    let mut new = plain(&[("fenced", Outcome::AsExpected)]);
    new.scenario = "storm".into();
    let error = compare(&recorded(&old), &recorded(&new), 1.5).unwrap_err();
    let said = "these are runs of different scenarios, contention and storm";
    assert_eq!(error.to_string(), said);
}

#[test]
fn conditions_and_environment_are_told_apart() {
    let old = plain(&[("fenced", Outcome::AsExpected)]);
    let mut new = plain(&[("fenced", Outcome::AsExpected)]);
    new.scenario_hash = "beef".to_owned();
    new.seed = Some(2);
    new.settings = vec!["lock.ttl=5s".to_owned()];
    new.mutant = Some("resource-accepts-stale".to_owned());
    new.environment.insert("kernel".to_owned(), "7".to_owned());
    let difference = between(&old, &new);
    let what: Vec<&str> = difference
        .conditions
        .iter()
        .map(|change| change.what.as_str())
        .collect();
    let expected = ["scenario text (hash)", "seed", "settings", "mutant"];
    assert_eq!(what, expected);
    let kernel = Change {
        case: None,
        what: "kernel".to_owned(),
        old: None,
        new: Some(json!("7")),
    };
    assert_eq!(difference.environment, [kernel]);
    assert!(!difference.verdict_changed);
}

#[test]
fn counts_of_violations_mean_something_only_where_they_are_determined() {
    let with = |counts: Value, violations: &[&str]| {
        let mut value = result(&plain(&[("fenced", Outcome::AsExpected)]));
        value["stable"]["cases"]["fenced"]["violations"] = counts;
        let rows = violations.iter().map(|kind| json!({ "kind": kind }));
        value["evidence"]["fenced"]["violations"] = rows.collect();
        read_value(&value)
    };
    let changes = |old: &ResultDocument, new: &ResultDocument| -> Vec<String> {
        let difference = compare(old, new, 1.5).expect("one scenario");
        let changes = difference.findings.iter();
        let words = changes.map(|change| format!("{:?} {:?}", change.what, change.new));
        words.collect()
    };
    let (one, two) = (json!({ "lost_update": 1 }), json!({ "lost_update": 2 }));
    let determined = changes(&with(one.clone(), &[]), &with(two, &[]));
    assert_eq!(determined, ["\"violations lost_update\" Some(Number(2))"]);
    let gone = changes(&with(one, &[]), &with(json!({}), &[]));
    assert_eq!(gone, ["\"violations lost_update\" Some(Number(0))"]);
    let timed = |kinds: &[&str]| with(Value::Null, kinds);
    let twice = changes(&timed(&["lost_update"]), &timed(&["lost_update"; 2]));
    assert!(twice.is_empty(), "{twice:?}");
    let came = changes(&timed(&[]), &timed(&["lost_update"]));
    assert_eq!(came, ["\"violations lost_update\" Some(Number(1))"]);
}

#[test]
fn steps_are_compared_by_their_contenders_and_not_by_their_place() {
    let old = run(vec![contended("queue", &[50, 200], 1.0)]);
    let new = run(vec![contended("queue", &[10, 50, 200], 1.0)]);
    let difference = between(&old, &new);
    assert_eq!(marked(&difference), [""; 0]);
    let throughput = |what: &str| {
        let mut all = difference.measurements.iter();
        all.find(|one| one.what == what)
            .map(|one| (one.old, one.new))
    };
    let both = throughput("load[200].throughput_per_s").expect("measured");
    assert!(both.0.is_some() && both.0 == both.1, "{both:?}");
    let only_new = throughput("load[10].throughput_per_s").expect("measured");
    assert!(
        only_new.0.is_none() && only_new.1.is_some(),
        "no silent zero"
    );
    let text = screen(&difference, &PLAIN);
    assert!(text.contains("only the new run has "), "{text}");
    assert!(!text.contains("only the old run has "), "{text}");
}

#[test]
fn noise_is_not_marked_and_what_is_beyond_it_is() {
    let step = |case: &mut CaseResult, change: fn(&mut crate::model::ContendStep)| {
        let load = case.notes.load.as_mut().expect("a load");
        change(&mut load.steps[0]);
    };
    let slower = load(|case| step(case, |step| step.acquire.p99_us *= 3));
    assert_eq!(marked(&slower), ["load[50].acquire.p99_us"]);
    let faster = load(|case| step(case, |step| step.acquire.p99_us /= 3));
    assert_eq!(marked(&faster), ["load[50].acquire.p99_us"]);
    // Each change is noise: within the ratio, below the floor, or a single extreme.
    let noise = load(|case| {
        step(case, |step| {
            step.acquire.p50_us += step.acquire.p50_us / 3;
            step.release.p50_us *= 2;
            step.acquire.max_us *= 10;
            step.fairness.worst_wait_us *= 10;
        });
    });
    assert_eq!(marked(&noise), [""; 0]);
    let few = load(|case| {
        step(case, |step| {
            step.acquire.count = 9_999;
            step.acquire.p999_us *= 10;
        });
    });
    assert_eq!(marked(&few), [""; 0], "a p999 of fewer than 10,000");
}

#[test]
fn what_was_not_measured_any_more_did_not_become_faster() {
    let difference = load(|case| {
        let load = case.notes.load.as_mut().expect("a load");
        load.steps[0].hand_off = Default::default();
    });
    assert_eq!(marked(&difference), ["load[50].hand_off.count"]);
    let mut all = difference.measurements.iter();
    let mean = all.find(|one| one.what == "load[50].hand_off.mean_us");
    let mean = mean.expect("the old run has it");
    assert_eq!((mean.old, mean.new), (Some(900.0), None));
}

#[test]
fn a_load_of_another_model_or_cut_short_is_another_condition() {
    let difference = load(|case| {
        let load = case.notes.load.as_mut().expect("a load");
        load.steps[1].model = "closed".to_owned();
        load.partial = Some("out of memory".to_owned());
    });
    let conditions = difference.conditions.iter();
    let what: Vec<&str> = conditions.map(|change| change.what.as_str()).collect();
    assert_eq!(what, ["load.partial", "load[200].model"]);
}

#[test]
fn narrow_and_markdown_hold_the_same() {
    let difference = load(|case| {
        let load = case.notes.load.as_mut().expect("a load");
        load.steps[0].acquire.p99_us *= 3;
    });
    let wide = screen(&difference, &PLAIN);
    let line = "! queue load[50].acquire.p99_us  200ms  600ms  x3.00";
    assert!(wide.contains(line), "{wide}");
    let narrow = Look { width: 40, ..PLAIN };
    let narrow = screen(&difference, &narrow);
    assert!(narrow.lines().all(|line| line.len() <= 40), "{narrow}");
    assert!(narrow.contains("ratio x3.00"), "{narrow}");
    let page = page(&difference, false);
    let row = "| queue | load\\[50\\].acquire.p99\\_us | 200ms | 600ms | **x3.00** |";
    assert!(page.contains(row), "{page}");
    let all = Look { all: true, ..PLAIN };
    assert!(screen(&difference, &all).lines().count() > wide.lines().count() + 50);
}

#[test]
fn a_headline_says_which_verdicts_changed_and_a_new_kernel_alone_is_none() {
    let good = plain(&[("fenced", Outcome::AsExpected)]);
    let bad = plain(&[("fenced", Outcome::NotAsExpected)]);
    assert_eq!(
        between(&good, &bad).headline(),
        "a verdict changed (fenced as expected -> not as expected); measurements: 0 of 0 beyond the noise"
    );
    let mut elsewhere = plain(&[("fenced", Outcome::AsExpected)]);
    elsewhere
        .environment
        .insert("kernel".to_owned(), "7".to_owned());
    let difference = between(&good, &elsewhere);
    assert_eq!(difference.environment.len(), 1);
    assert!(!difference.is_worth_reading());
    assert!(between(&good, &bad).is_worth_reading());
    let slower = load(|case| {
        let load = case.notes.load.as_mut().expect("a load");
        load.steps[0].throughput_per_s /= 3.0;
    });
    assert!(slower.is_worth_reading());
    let text = folded(&slower);
    let title = "<details><summary>contention: the same verdicts; measurements: 1 of ";
    assert!(text.starts_with(title), "{text}");
    assert!(text.contains("\n\n### contention"), "{text}");
}

#[test]
fn a_case_that_nobody_could_judge_is_no_changed_case() {
    use CaseStatus::{Absent, Unfinished};
    let [good, bad, unsure] = [
        Outcome::AsExpected,
        Outcome::NotAsExpected,
        Outcome::Inconclusive,
    ]
    .map(CaseStatus::Judged);
    let weights = [
        (good, good, Outcome::AsExpected),
        (bad, bad, Outcome::AsExpected),
        (good, unsure, Outcome::Inconclusive),
        (good, Unfinished, Outcome::Inconclusive),
        (unsure, good, Outcome::Inconclusive),
        (good, bad, Outcome::NotAsExpected),
        (bad, good, Outcome::NotAsExpected),
        (unsure, bad, Outcome::NotAsExpected),
        (good, Absent, Outcome::NotAsExpected),
        (Absent, good, Outcome::NotAsExpected),
    ];
    for (old, new, weight) in weights {
        let verdict = Verdict {
            case: "a".to_owned(),
            old,
            new,
            old_lock: None,
            new_lock: None,
            determined: true,
        };
        assert_eq!(verdict.weight(), weight, "{old:?} {new:?}");
    }
}
