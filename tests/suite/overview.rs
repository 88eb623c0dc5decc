//! `report --index`: the overview of a folder of results, good ones and broken ones.

mod browser;

use crate::support::*;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const NIGHTS: [&str; 3] = [
    "20261113T020000.000Z-1",
    "20261114T020000.000Z-1",
    "20261115T020000.000Z-1",
];

fn index(results: &Results) -> String {
    let ended = offline(&["report", "--index", results.path()]).expect_code(0);
    let path = format!("{}/index.html", results.path());
    assert_eq!(ended.stdout, format!("{path}\n"));
    fs::read_to_string(path).expect("the page")
}

fn add(results: &Results, scenario: &str, run: &str, result: &Value) {
    results.write(&format!("{scenario}/{run}/result.json"), result.to_string());
}

fn of(name: &str) -> Value {
    json(Path::new(&real(name)))
}

/// The value of an attribute, each time it stands in a text.
fn values(text: &str, attribute: &str) -> Vec<String> {
    let before = format!("{attribute}=\"");
    let parts = text.split(&before).skip(1);
    let values = parts.filter_map(|part| part.split('"').next());
    values.map(str::to_owned).collect()
}

#[track_caller]
fn expect(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "no {part}\nin\n{page}");
    }
}

#[test]
fn every_run_is_a_mark_that_says_what_its_result_says() {
    let results = Results::new();
    let nights = ["good", "mutant", "again"].map(of);
    for (run, result) in NIGHTS.iter().zip(&nights) {
        add(&results, SCENARIO, run, result);
    }
    results.write(&format!("{SCENARIO}/{}/report.html", NIGHTS[2]), "a page");
    results.baseline(SCENARIO, &of("good"));
    let page = index(&results);
    let strip = page.split("<ol class=\"strip\"").nth(1).expect("a strip");
    let strip = strip.split("</ol>").next().expect("its end");
    let verdicts = nights.map(|night| night["stable"]["verdict"].as_str().map(str::to_owned));
    assert_eq!(
        values(strip, "data-verdict")
            .into_iter()
            .map(Some)
            .collect::<Vec<_>>(),
        verdicts
    );
    let files = ["result.json", "result.json", "report.html"];
    let links = NIGHTS.iter().zip(files);
    let links: Vec<String> = links
        .map(|(run, file)| format!("{SCENARIO}/{run}/{file}"))
        .collect();
    assert_eq!(values(strip, "href"), links);
    for link in links {
        assert!(Path::new(results.path()).join(&link).is_file(), "{link}");
    }
    expect(
        &page,
        &[
            "1 of 1 scenarios as expected. The newest run began at 2026-11-15 02:00:00 UTC.",
            "data-scenario=\"pause-gt-ttl\" data-verdict=\"as_expected\"",
            "with the defect resource-ignores-token",
            "Measurements over the last 2 runs",
        ],
    );
    // What is measured is what the first and the last good night say.
    let quiet = |result: &Value| result["measurements"]["fenced"]["quiet_ms"].as_f64();
    let seconds = [of("good"), of("again")].map(|result| {
        let ms = quiet(&result).expect("it was measured");
        format!("<td class=\"number\">{:.2}s</td>", ms / 1_000.0)
    });
    let row = page
        .split("data-measurement=\"quiet_ms\"")
        .nth(1)
        .expect("a row");
    let row = row.split("</tr>").next().expect("its end");
    expect(row, &[&seconds.concat()]);
}

#[test]
fn what_is_no_whole_result_is_listed_with_its_reason() {
    let results = Results::new();
    let text = good().to_string();
    let newer = text.replace("\"schema_version\":1", "\"schema_version\":7");
    let broken: [(&str, &str, &str); 6] = [
        ("torn", &text[..text.len() / 2], "it ends in the middle"),
        ("empty", "", "it ends in the middle"),
        (
            "foreign",
            "{\"name\": \"package\"}",
            "it has no schema_version",
        ),
        (
            "newer",
            &newer,
            "it has schema version 7, which is newer than this program&#39;s 1",
        ),
        ("yaml", "name: yaml", "it is not JSON"),
        ("stray", &text, "it is a run of pause-gt-ttl"),
    ];
    for (scenario, content, _) in broken {
        results.write(&format!("{scenario}/{}/result.json", NIGHTS[0]), content);
    }
    results.write(&format!("none/{}/scenario.yml", NIGHTS[0]), "name: none");
    results.write(&format!("nothing/{}/notes.txt", NIGHTS[0]), "");
    fs::create_dir(Path::new(results.path()).join("begun")).expect("a folder");
    let page = index(&results);
    for (scenario, _, reason) in broken {
        expect(
            &page,
            &[&format!(
                "data-scenario=\"{scenario}\" data-verdict=\"unreadable\""
            )],
        );
        let said = page.contains(reason) || page.contains(&reason.replace("&#39;", "'"));
        assert!(said, "no {reason}\nin\n{page}");
    }
    expect(
        &page,
        &[
            "8 unreadable, 1 without a run",
            "the run ended before it wrote a result.json",
            "it has neither result.json nor scenario.yml",
            "data-scenario=\"begun\" data-verdict=\"none\"",
        ],
    );
}

#[test]
fn a_run_that_was_killed_half_way_says_so_and_counts_no_case_as_good() {
    let results = Results::new();
    let mut killed = good();
    killed["stable"]["cases"]
        .as_object_mut()
        .expect("cases")
        .remove("fenced");
    killed["stable"]["unfinished"] = json!(["fenced"]);
    killed["stable"]["verdict"] = json!("inconclusive");
    add(&results, SCENARIO, NIGHTS[0], &killed);
    results.baseline(SCENARIO, &good());
    let page = index(&results);
    expect(
        &page,
        &[
            "data-verdict=\"inconclusive\"",
            "1 of 2 cases as expected, ended before it was over",
            "<span class=\"differs\">differs</span>",
            "1 differs from its baseline",
        ],
    );
}

#[test]
fn a_folder_that_has_no_runs_or_is_not_there_is_wrong_usage() {
    let results = Results::new();
    offline(&["report", "--index", results.path()])
        .expect_code(64)
        .expect_said(&["has no runs: neither SCENARIO/RUN/result.json"])
        .expect_short_error(1);
    offline(&["report", "--index", "/no/such/folder"])
        .expect_code(64)
        .expect_said(&["cannot read the folder /no/such/folder"]);
    offline(&["report"]).expect_code(64);
}

#[test]
fn a_page_of_somebody_else_is_not_written_over() {
    let results = Results::new();
    add(&results, SCENARIO, NIGHTS[0], &good());
    let theirs = results.write("index.html", "<title>My site</title>");
    offline(&["report", "--index", results.path()])
        .expect_code(64)
        .expect_said(&["index.html is there and was not made by fencepost"]);
    let text = fs::read_to_string(&theirs).expect("the page");
    assert_eq!(text, "<title>My site</title>");
    fs::remove_file(theirs).expect("it was there");
    // Its own it makes anew.
    assert_eq!(index(&results), index(&results));
}

#[test]
fn a_folder_of_other_things_or_of_one_scenario_gets_no_page() {
    let site = Results::new();
    site.write("css/old/style.css", "");
    offline(&["report", "--index", site.path()])
        .expect_code(64)
        .expect_said(&["has no runs"]);
    let results = Results::new();
    add(&results, SCENARIO, NIGHTS[0], &good());
    let one = format!("{}/{SCENARIO}", results.path());
    offline(&["report", "--index", &one])
        .expect_code(64)
        .expect_said(&["holds the runs of one scenario; name the folder above it"]);
    assert!(!Path::new(&one).join("index.html").exists());
}

#[test]
fn what_is_not_named_like_a_run_is_not_the_newest() {
    let results = Results::new();
    add(&results, SCENARIO, NIGHTS[0], &good());
    results.write(&format!("{SCENARIO}/tmp/notes.txt"), "");
    let page = index(&results);
    expect(
        &page,
        &[
            "1 of 1 scenarios as expected. The newest run began at 2026-11-13",
            "Not taken for runs, since their names do not begin with a time: tmp.",
        ],
    );
}

#[test]
fn a_name_that_is_no_text_hides_nothing() {
    let results = Results::new();
    let folder = Path::new(results.path()).join(OsStr::from_bytes(b"pause\xff"));
    fs::create_dir_all(folder.join(NIGHTS[0])).expect("a folder");
    let file = folder.join(NIGHTS[0]).join("result.json");
    fs::write(file, good().to_string()).expect("a file");
    let page = index(&results);
    let link = format!("href=\"pause%FF/{}/result.json\"", NIGHTS[0]);
    expect(&page, &["it is a run of pause-gt-ttl", &link]);
}

#[test]
fn thousands_of_runs_are_still_a_page() {
    let results = Results::new();
    let text = good();
    for run in 0..230 {
        add(
            &results,
            SCENARIO,
            &format!("20261113T02{run:04}.000Z-1"),
            &text,
        );
    }
    let page = index(&results);
    expect(
        &page,
        &[
            "210 older",
            "30 older runs are in the folder and not listed",
        ],
    );
    assert!(page.len() < 200_000, "{}", page.len());
}
