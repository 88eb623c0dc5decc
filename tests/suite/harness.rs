//! The harness as a library: a test of somebody else runs a scenario.

use fencepost::{Harness, HarnessError, Runtime, Verdict};
use std::time::Duration;
use tempfile::TempDir;

/// Needs neither Docker nor a server.
fn simulated(scenario: &str) -> (Harness, TempDir) {
    let results = tempfile::tempdir().expect("a temporary folder");
    let harness = Harness::new(scenario)
        .program(env!("CARGO_BIN_EXE_fencepost"))
        .runtime(Runtime::Sim)
        .results(results.path());
    (harness, results)
}

#[tokio::test]
async fn a_test_runs_a_scenario_and_reads_its_report() {
    let (harness, results) = simulated("pause-gt-ttl");
    let report = harness.seed(7).run().await.expect("a report");
    report.assert_as_expected();
    let (fenced, unfenced) = (&report.cases["fenced"], &report.cases["unfenced"]);
    assert_eq!(fenced.count("stale_rejections"), 1);
    assert!(fenced.violations.is_empty());
    assert!(unfenced.violations.contains_key("stale_accept"));
    assert_eq!(fenced.promises["exclusion"], "kept");
    assert!(report.folder.starts_with(results.path()));
    assert!(report.folder.join("result.json").is_file());
}

#[tokio::test]
async fn what_is_not_as_expected_is_a_report_with_its_reasons() {
    let (harness, _results) = simulated("pause-gt-ttl");
    let harness = harness.case("unfenced").set("fence=on");
    let report = harness.run().await.expect("a report");
    assert_eq!(report.verdict, Verdict::NotAsExpected);
    assert_eq!(report.cases.len(), 1);
    let words = report.to_string();
    assert!(
        words.contains("expected") && words.contains("violations"),
        "{words}"
    );
}

#[tokio::test]
async fn what_cannot_run_is_an_error_that_says_why() {
    let (harness, _results) = simulated("pause-gt-tt");
    let error = harness.run().await.unwrap_err();
    let words = error.to_string();
    assert!(words.contains("did you mean `pause-gt-ttl`"), "{words}");
    assert!(words.ends_with("(exit code 64)"), "{words}");
    assert!(
        matches!(error, HarnessError::Failed { code: Some(64), .. }),
        "{error:?}"
    );

    let (harness, _results) = simulated("pause-gt-ttl");
    let error = harness
        .program("/nonexistent/fencepost")
        .run()
        .await
        .unwrap_err();
    assert!(error.to_string().contains("Harness::program"), "{error}");
}

/// A program that never ends in time is asked to end, and is gone afterwards.
#[tokio::test]
async fn a_run_that_takes_too_long_is_ended() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (program, pid) = (folder.path().join("endless"), folder.path().join("pid"));
    let script = format!("#!/bin/sh\necho $$ > {}\nexec sleep 600\n", pid.display());
    std::fs::write(&program, script).expect("a temporary file");
    let runnable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, runnable).expect("a file of our own");
    let harness = Harness::new("any").program(&program);
    let error = harness
        .limit(Duration::from_secs(2))
        .run()
        .await
        .unwrap_err();
    assert!(matches!(error, HarnessError::TooLong { .. }), "{error:?}");
    let pid = std::fs::read_to_string(pid).expect("it began");
    let process = format!("/proc/{}", pid.trim());
    assert!(!std::path::Path::new(&process).exists(), "{process}");
}
