//! The overview in a real browser: what is seen is what the results say.

use super::{NIGHTS, add, index, of};
use crate::page::browser::Browser;
use crate::pause_gt_ttl::recorded_run;
use crate::support::*;
use serde_json::json;

#[tokio::test]
async fn the_overview_holds_in_a_real_browser() {
    let _turn = docker_shared();
    let results = Results::new();
    let real = json(&recorded_run().join("result.json"));
    let nights = [of("good"), of("mutant"), real];
    for (run, result) in NIGHTS.iter().zip(&nights) {
        add(&results, SCENARIO, run, result);
    }
    results.write(&format!("torn/{}/result.json", NIGHTS[0]), "{");
    results.baseline(SCENARIO, &of("good"));
    let browser = Browser::start().await;
    browser.write(&index(&results), "index.html");
    browser.write(include_str!("look.html"), "look.html");

    let desk = ["--window-size=1400,2200"];
    let (seen, complaints) = browser.measure("look.html#1300", &desk);
    assert_eq!(complaints, [""; 0], "the console is silent");
    let verdicts = nights.map(|night| night["stable"]["verdict"].clone());
    let torn = json!({
        "name": "torn", "verdict": "unreadable", "marks": ["unreadable"], "signs": "–", "hit": true,
    });
    let paused = json!({
        "name": SCENARIO, "verdict": verdicts[2], "marks": verdicts, "signs": "✓✗✓", "hit": true,
    });
    assert_eq!(seen["scenarios"], json!([torn, paused]));
    assert_eq!(seen["title"], "Runs of fencepost");
    assert_eq!(seen["unnamed"], 0);
    let trends = seen["trends"].as_u64();
    assert!(trends.is_some_and(|trends| trends >= 8), "{seen}");

    let (phone, complaints) = browser.measure("look.html#390", &desk);
    assert_eq!(complaints, [""; 0]);
    assert_eq!(phone["scrollWidth"], 390, "nothing sticks out on a phone");
    assert_eq!(phone["scenarios"], seen["scenarios"]);

    let (dark, _) = browser.measure("look.html#1300", &["--force-dark-mode"]);
    assert_ne!(dark["paper"], seen["paper"]);

    let (printed, sheets) = browser.printed("index.html");
    // The last is folded up on a screen.
    for words in [
        "Runs of fencepost",
        SCENARIO,
        "it ends in the middle",
        "with the defect",
    ] {
        assert!(printed.contains(words), "{words} is not in {printed}");
    }
    assert!(sheets <= 4, "{sheets} sheets");
}
