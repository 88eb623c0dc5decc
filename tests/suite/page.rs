//! `report.html`: made from recorded files of any age, and looked at in a real browser.

pub mod browser;

use crate::pause_gt_ttl::recorded_run;
use crate::support::*;
use browser::Browser;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PAGE: &str = "report.html";
/// Of two cases with a drawing each.
const MOST_SHEETS: usize = 12;

/// Everything that is to be seen in one browser, because starting one takes its time.
#[tokio::test]
async fn a_page_holds_in_a_real_browser() {
    let _turn = docker_shared();
    let run = recorded_run();
    assert!(run.join(PAGE).is_file(), "a run leaves its page");
    let copy = tempfile::tempdir().expect("a temporary folder");
    copy_folder(run, copy.path());
    fs::remove_file(copy.path().join(PAGE)).expect("a page");
    let page = made(copy.path());
    assert!(fs::metadata(&page).expect("a page").len() < 2_000_000);

    let browser = Browser::start().await;
    browser.put(&page, PAGE);
    browser.write(include_str!("page/look.html"), "look.html");
    browser.write(include_str!("page/colours.html"), "colours.html");

    let desk = ["--window-size=1400,3000"];
    let (seen, complaints) = browser.measure("look.html#1400", &desk);
    assert_eq!(complaints, [""; 0], "the console is silent");
    assert_eq!(seen["title"], "pause-gt-ttl: as expected");
    counts_are_those_of_the_result(&seen, &json(&run.join("result.json")));
    the_pair_is_in_sight(&seen);
    stories_lead_to_their_marks(&seen);
    for nothing in ["unfocusable", "unnamed", "invisible"] {
        assert_eq!(seen[nothing], 0, "{nothing}");
    }

    browser.look(
        "look.html#1400",
        &[desk[0], "--screenshot=/pages/picture.png"],
    );
    the_pair_has_its_colour(&browser, &seen);

    let (phone, complaints) = browser.measure("look.html#390", &desk);
    assert_eq!(complaints, [""; 0]);
    assert_eq!(phone["width"], 390);
    assert_eq!(phone["scrollWidth"], 390, "nothing sticks out on a phone");
    the_pair_is_in_sight(&phone);

    let (dark, _) = browser.measure("look.html#1400", &["--force-dark-mode"]);
    assert_eq!(seen["paper"], "rgb(255, 255, 255)");
    assert_eq!(dark["paper"], "rgb(20, 23, 26)");
    assert_ne!(
        dark["bad"], seen["bad"],
        "what is bad is readable on either"
    );

    let (printed, sheets) = browser.printed(PAGE);
    for words in [
        "pause-gt-ttl: as expected.",
        // What is folded up on a screen: the scenario's own text.
        "longer_than:",
    ] {
        assert!(printed.contains(words), "{words} is not in {printed}");
    }
    // The pair has its label, and the story beside it its title.
    let kinds = printed.matches("stale_accept, token_regression, lost_update");
    assert!(kinds.count() >= 2, "{printed}");
    assert!(sheets <= MOST_SHEETS, "{sheets} sheets");

    no_script_but_its_own_runs(&browser, &page);
}

fn counts_are_those_of_the_result(seen: &Value, result: &Value) {
    for case in ["unfenced", "fenced"] {
        let evidence = &result["evidence"][case];
        let shown = &seen["counts"][case];
        let violations = evidence["violations"].as_array().expect("a list");
        assert_eq!(shown["violations"], violations.len(), "{case}");
        let counts = evidence["counts"].as_object().expect("counts");
        assert!(counts.len() > 5, "{counts:?}");
        for (name, count) in counts {
            assert_eq!(shown[name], *count, "{name} of {case}");
        }
    }
}

/// In the part of the drawing that is in view, with nothing in front of it. How far
/// apart its writes are is up to the run: where they are too far, its middle is there.
fn the_pair_is_in_sight(seen: &Value) {
    let pairs = seen["pairs"].as_array().expect("a list");
    assert_eq!(
        pairs.len(),
        1,
        "one write broke rules against one: {pairs:?}"
    );
    let pair = &pairs[0];
    assert_eq!(pair["kinds"], "stale_accept, token_regression, lost_update");
    let number = |value: &Value| value.as_f64().expect("a number");
    let (left, width) = (number(&pair["left"]), number(&pair["width"]));
    let (from, room) = (
        number(&pair["lanes"]["left"]),
        number(&pair["lanes"]["width"]),
    );
    assert!(width > 10.0 && number(&pair["height"]) > 2.0, "{pair}");
    let middle = left + width / 2.0;
    assert!(middle >= from && middle <= from + room, "{pair}");
    if width < room / 2.0 {
        assert!(left >= from && left + width <= from + room, "{pair}");
    }
    assert_eq!(pair["hit"], true, "{pair}");
}

fn stories_lead_to_their_marks(seen: &Value) {
    let steps = seen["steps"].as_array().expect("a list");
    let told = |index: usize| steps[index].as_str().unwrap_or("nothing");
    assert_eq!(steps.len(), 14, "seven steps in each case: {steps:?}");
    assert!(
        told(0).starts_with("a holds account-42 with token 1"),
        "{steps:?}"
    );
    assert!(told(1).starts_with("pause of a"), "{steps:?}");
    assert!(
        told(2).contains("redis sees the TTL run out for account-42 of a"),
        "{steps:?}"
    );
    assert!(
        told(3).starts_with("b holds account-42 with token 2"),
        "{steps:?}"
    );
    assert!(told(5).starts_with("resume of a"), "{steps:?}");
    assert!(told(6).contains("accepts a's write"), "{steps:?}");
    assert!(told(13).contains("refuses a's write"), "{steps:?}");
    let panels = seen["panels"].as_array().expect("a list");
    assert_eq!(panels.len(), 2);
    for panel in panels {
        let panel = panel.as_str().expect("words");
        assert!(panel.contains("\"event\":\"acquired\""), "{panel}");
    }
}

/// The drawing of the browser itself, pixel by pixel.
fn the_pair_has_its_colour(browser: &Browser, seen: &Value) {
    let pair = &seen["pairs"][0];
    let part = ["left", "top", "width", "height"].map(|side| {
        let side = pair[side].as_f64().expect("a number");
        format!("{side:.0}")
    });
    let (colours, _) = browser.measure(&format!("colours.html#{}", part.join(",")), &[]);
    let bad = seen["bad"].as_str().expect("a colour");
    let count = colours[bad].as_u64().unwrap_or(0);
    assert!(count > 30, "{bad} is not among {colours}");
}

/// A page with a foreign script in it: the policy keeps it from running, and the
/// console says so, which also shows that a complaint would have been heard.
fn no_script_but_its_own_runs(browser: &Browser, page: &Path) {
    let text = fs::read_to_string(page).expect("a page");
    let foreign = "<script>document.title = 'broken into'</script></body>";
    let broken = text.replace("</body>", foreign);
    assert_ne!(broken, text);
    browser.write(&broken, PAGE);
    let (seen, complaints) = browser.measure("look.html#1400", &[]);
    assert_eq!(seen["title"], "pause-gt-ttl: as expected");
    let refused = complaints
        .iter()
        .any(|line| line.contains("Content Security Policy"));
    assert!(refused, "{complaints:?}");
}

/// The page of a run, made without Docker.
fn made(run: &Path) -> PathBuf {
    let run = run.to_str().expect("a plain path");
    let ended = offline(&["report", run]).expect_code(0);
    let page = PathBuf::from(ended.stdout.trim_end());
    assert!(page.ends_with(PAGE), "{ended}");
    page
}

#[test]
fn a_killed_run_has_a_page_that_says_so() {
    let run = killed_run();
    let text = fs::read_to_string(made(run.path())).expect("a page");
    for words in [
        "the run ended before it wrote a result.json",
        "data-verdict=\"inconclusive\"",
        "the run ended before this case was collected",
        // What it recorded until then is there all the same.
        "accepts a's write with token 17, although 17 &lt; 18",
        "class=\"mark a-pair\"",
        // What was drawn by which seed, nobody knows any more.
        "<pre data-command=\"run\">fencepost run pause-gt-ttl</pre>",
        // Nor what became of the case that left no folder.
        "fenced did not finish",
    ] {
        assert!(text.contains(words), "{words} is not in the page");
    }
}

#[test]
fn names_from_files_do_nothing() {
    let run = killed_run();
    let case = run.path().join("unfenced");
    for entry in fs::read_dir(&case).expect("a folder") {
        let path = entry.expect("readable").path();
        let text = fs::read_to_string(&path).expect("rows");
        let hostile = text
            .replace("account-42", "</title></script><script>alert(1)</script>")
            .replace(
                "\"worker\":\"a\"",
                r#""worker":"\"><img src=x onerror=alert(2)>""#,
            );
        assert!(
            path.ends_with("faults.jsonl") || hostile != text,
            "{path:?}"
        );
        fs::write(&path, hostile).expect("a copy");
    }
    let text = fs::read_to_string(made(run.path())).expect("a page");
    assert!(text.contains("&lt;script&gt;alert(1)"), "the name is shown");
    assert!(text.contains("&lt;img src=x"), "the name is shown");
    assert!(
        !text.contains("<script>alert") && !text.contains("<img"),
        "and only shown"
    );
    assert_eq!(text.matches("<script>").count(), 1, "the page's own");
}

#[test]
fn what_is_no_run_has_no_page() {
    offline(&["report", "/nonexistent"])
        .expect_code(64)
        .expect_said(&["is not the folder of a run"]);
    let run = killed_run();
    let log = run.path().join("unfenced/accepted.jsonl");
    fs::write(&log, "nonsense\n").expect("a copy");
    let path = run.path().to_str().expect("a plain path");
    offline(&["report", path])
        .expect_code(64)
        .expect_said(&["accepted.jsonl:1: ", "not what a run writes"]);
    assert!(!run.path().join(PAGE).exists());
}

/// Rows of a known history, as a run leaves them that is killed in its first case.
fn killed_run() -> TempDir {
    let run = tempfile::tempdir().expect("a temporary folder");
    let scenario = project().join("scenarios/pause-gt-ttl.yml");
    fs::copy(scenario, run.path().join("scenario.yml")).expect("a scenario");
    let case = run.path().join("unfenced");
    copy_folder(&project().join("tests/corpus/pause-gt-ttl-unfenced"), &case);
    fs::remove_file(case.join("expected.json")).expect("a copy");
    run
}
