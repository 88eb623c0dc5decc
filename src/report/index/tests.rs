use super::*;
use crate::report::made_up::{case, keyspace, run, says};

fn seen(change: impl FnOnce(&mut Value)) -> RunDigest {
    let mut value = json!(ResultDocument::of(&run(vec![
        case("fenced", None),
        case("unfenced", None)
    ])));
    change(&mut value);
    RunDigest::of(&document::read(value.to_string().as_bytes()).unwrap())
}

fn good(quiet_ms: u64) -> RunDigest {
    seen(|value| value["measurements"]["fenced"]["quiet_ms"] = json!(quiet_ms))
}

fn bad() -> RunDigest {
    seen(|value| {
        value["stable"]["verdict"] = json!("not_as_expected");
        value["stable"]["cases"]["fenced"]["verdict"] = json!("not_as_expected");
    })
}

fn history(scenario: &str, runs: Vec<Result<RunDigest, String>>) -> History {
    let runs = runs.into_iter().enumerate().map(|(index, seen)| {
        let name = format!("20261116T01420{index}.123Z-1");
        Run {
            link: format!("{scenario}/{name}/report.html"),
            name,
            seen,
        }
    });
    History {
        scenario: scenario.to_owned(),
        runs: runs.collect(),
        older: 0,
        remarks: Vec::new(),
        baseline: None,
    }
}

#[test]
fn the_worst_come_first_and_are_counted() {
    let calm = history("calm", vec![Ok(bad()), Ok(good(1))]);
    let storm = history("storm", vec![Ok(good(1)), Ok(bad())]);
    let torn = history("torn", vec![Err("it ends in the middle".to_owned())]);
    let none = history("none", Vec::new());
    let page = page(&[calm, none, storm, torn]);
    says(
        &page,
        &[
            "1 of 4 scenarios as expected, 1 not as expected, 1 unreadable, 1 without a run.",
            "The newest run began at 2026-11-16 01:42:01 UTC.",
            "<tr data-scenario=\"storm\" data-verdict=\"not_as_expected\">",
            "The run of 2026-11-16 01:42:00 UTC cannot be read: it ends in the middle.",
            "There is no run of it yet.",
        ],
    );
    let places = ["storm", "torn", "calm", "none"];
    let places = places.map(|name| page.find(&format!("data-scenario=\"{name}\"")).unwrap());
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn marks_go_from_old_to_new_and_lead_to_the_runs() {
    let mut history = history("calm", (0..40).map(|n| Ok(good(n))).collect());
    history.older = 5;
    history.runs[39].seen = Ok(bad());
    let strip = strip::strip(&history).into_string();
    assert_eq!(strip.matches("class=\"mark ").count(), 20);
    says(&strip, &["25 older"]);
    let last = strip.rsplit("<a ").next().unwrap();
    says(
        last,
        &[
            "data-verdict=\"not_as_expected\"",
            "/20261116T014203",
            "1 of 2 cases as expected",
        ],
    );
}

#[test]
fn a_baseline_that_differs_is_marked_and_a_broken_one_is_told() {
    let mut changed = history("changed", vec![Ok(bad())]);
    changed.baseline = Some(Ok(good(1)));
    let mut same = history("same", vec![Ok(good(1))]);
    same.baseline = Some(Ok(good(2)));
    let mut broken = history("broken", vec![Ok(good(1))]);
    broken.baseline = Some(Err("it is not JSON".to_owned()));
    let text = page(&[changed, same, broken]);
    assert_eq!(text.matches("class=\"differs\"").count(), 1, "{text}");
    says(&text, &["; 1 differs from its baseline.", "it is not JSON"]);
}

#[test]
fn a_line_has_gaps_where_nothing_was_measured_and_no_zeros() {
    let gap = seen(|value| value["measurements"]["fenced"] = json!({}));
    let other = seen(|value| {
        value["stable"]["settings"] = json!(["lock.ttl=5s"]);
        value["measurements"]["fenced"]["quiet_ms"] = json!(99_000);
    });
    let runs = vec![
        Ok(good(2_000)),
        Ok(good(3_000)),
        Ok(gap),
        Ok(other),
        Ok(good(2_500)),
    ];
    let text = trends::trends(&history("calm", runs)).into_string();
    says(
        &text,
        &[
            "Measurements over the last 4 runs",
            "from 2s to 2.5s, between 2s and 3s",
            // There are four places, and the third is a gap.
            "<path d=\"M3 21.0L41 3.0M117 12.0\">",
        ],
    );
    assert!(
        !text.contains("99"),
        "a run with settings is no part of it: {text}"
    );
}

#[test]
fn one_value_is_no_trend_and_none_is_nothing() {
    let text = trends::trends(&history("calm", vec![Ok(good(2_000))])).into_string();
    says(&text, &["Measurements of one run", ">2s<"]);
    assert!(!text.contains("<svg"), "{text}");
    let nothing = history("torn", vec![Err("torn".to_owned())]);
    assert_eq!(trends::trends(&nothing).0, "");
}

#[test]
fn the_figures_of_a_keyspace_are_not_folded() {
    let record = run(vec![case("keys", Some(keyspace()))]);
    let value = json!(ResultDocument::of(&record)).to_string();
    let digest = RunDigest::of(&document::read(value.as_bytes()).unwrap());
    let text = trends::trends(&history("ten-million-keys", vec![Ok(digest)])).into_string();
    let unfolded = text.split("<details>").next().unwrap();
    says(unfolded, &["figures.peak_used_memory_bytes"]);
}

#[test]
fn names_are_text_and_never_markup() {
    let evil = "<script>alert(1)</script>\"'";
    let page = page(&[history(evil, vec![Err(evil.to_owned())])]);
    assert!(!page.contains("<script"), "{page}");
    says(&page, &["id=\"scenario-_3cscript_3ealert_281_29"]);
}

#[test]
fn a_run_that_was_killed_says_what_it_had_not_judged() {
    let killed = seen(|value| {
        value["stable"]["verdict"] = json!("inconclusive");
        value["stable"]["unfinished"] = json!(["fenced"]);
        value["stable"]["cases"]
            .as_object_mut()
            .unwrap()
            .remove("fenced");
    });
    let page = page(&[history("calm", vec![Ok(killed)])]);
    says(
        &page,
        &[
            "ended before it was over",
            "fenced did not finish",
            "<td>1 of 2</td>",
        ],
    );
}

#[test]
fn what_became_of_the_lock_stands_beside_each_case() {
    let with = |lock: &str| seen(|value| value["stable"]["cases"]["fenced"]["lock"] = json!(lock));
    let mut storm = history("storm", vec![Ok(with("broken"))]);
    storm.baseline = Some(Ok(with("kept")));
    assert_eq!(storm.differs(), Some(true));
    let mut earlier = history("earlier", vec![Ok(with("broken"))]);
    earlier.baseline = Some(Ok(good(1)));
    assert_eq!(earlier.differs(), Some(false), "nothing to compare with");
    let page = page(&[storm]);
    says(
        &page,
        &[
            "<span class=\"differs\">lock broken</span>",
            "<small>lock kept</small>",
        ],
    );
}
