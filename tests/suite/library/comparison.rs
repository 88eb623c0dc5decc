//! Lock services beside each other. The figures of so small a load mean nothing; that each comes
//! from its own case, and is shown, does.

use super::*;

const SCENARIO: &str = "compare-services";
const SMALL: [&str; 6] = [
    "--set",
    "duration=1s",
    "--set",
    "contend.floor=300ms",
    "--set",
    "contend.contenders=[3, 8]",
];

/// Plays one service; returns its row, the result and the screen.
fn compared(runtime: Runtime, service: &str) -> (Value, Value, String) {
    let results = fresh_folder(&format!("compared-{service}"));
    let arguments = [&["--case", service], &SMALL[..]].concat();
    let ended = run_until_judged(runtime, &results, SCENARIO, &arguments).expect_code(0);
    let result = came_out_as_expected(&results, SCENARIO);
    let services = result["services"].as_array().expect("services");
    let [row] = &services[..] else {
        panic!("one service was asked for: {services:#?}");
    };
    assert_eq!(row["service"], service);
    let page = fs::read_to_string(results.join(SCENARIO).join("latest/report.html")).unwrap();
    for words in ["<section id=\"services\">", "x floor", "clock set forward"] {
        assert!(page.contains(words), "no {words} on the page");
    }
    (row.clone(), result, ended.stdout)
}

fn is_positive(row: &Value, pointer: &str) {
    let value = row.pointer(pointer).and_then(Value::as_f64);
    assert!(value > Some(0.0), "{pointer} of {row:#}");
}

#[test]
fn a_redis_is_measured_beside_its_floor_and_broken_by_its_clock() {
    let (row, result, screen) = compared(Runtime::Local, "redis-queue");
    for pointer in [
        "/uncontended/p50_us",
        "/uncontended/floor_p50_us",
        "/uncontended/ratio",
        "/hot_key/3/hand_offs_per_s",
        "/hot_key/8/hand_offs_per_s",
        "/hot_key/8/jain",
        "/blocked/for_ms",
        "/paused_unfenced/violations",
        "/paused_fenced/refused",
    ] {
        is_positive(&row, pointer);
    }
    assert_eq!(row["blocked"]["ttl_ms"], 2_000);
    assert_eq!(row["paused_fenced"]["violations"], 0);
    assert_eq!(row["clock_breaks_exclusion"], true);
    assert_eq!(row["tokens_only_grew"], true);
    let cases = result["stable"]["cases"].as_object().expect("cases");
    assert_eq!(cases.len(), 5, "{:?}", cases.keys());
    for words in ["SET, DEL", "two holders", "1 refused"] {
        assert!(screen.contains(words), "no {words}\n{screen}");
    }
}

#[test]
fn a_session_lock_looks_at_no_clock_and_is_free_when_its_holder_dies() {
    let (row, _, screen) = compared(Runtime::Docker, "postgres-advisory");
    is_positive(&row, "/uncontended/floor_p50_us");
    assert_eq!(row["clock_breaks_exclusion"], false);
    let blocked = row["blocked"]["for_ms"].as_u64();
    assert!(blocked < Some(2_000), "before its TTL: {row:#}");
    let paused = &row["paused_unfenced"];
    assert_eq!(paused["another_was_granted"], false, "{row:#}");
    assert_eq!(paused["violations"], 0);
    for words in ["all others wait", "one holder"] {
        assert!(screen.contains(words), "no {words}\n{screen}");
    }
}
