use super::*;
use crate::report::made_up::{case, excused, lock_case, run, violation};

fn result(run: &RunRecord) -> Value {
    json!(ResultDocument::of(run))
}

#[test]
fn what_became_of_the_lock_is_told_beside_the_verdict() {
    let mut case = lock_case("fenced", Kept::Broken);
    let kind = ViolationKind::GrantedWhileHeld;
    case.judgement.violations = vec![violation(kind)];
    case.judgement.excused = vec![excused(kind, "restart-empty of redis")];
    let unchecked = Kept::NotChecked("no TTL in the record".to_owned());
    case.judgement.promises.insert(Promise::Loss, unchecked);
    case.determined = true;
    let result = result(&run(vec![case]));
    let stable = &result["stable"]["cases"]["fenced"];
    assert_eq!(
        (&stable["verdict"], &stable["lock"]),
        (&json!("as_expected"), &json!("broken"))
    );
    assert_eq!(stable["excused"], json!({ "granted_while_held": 1 }));
    assert_eq!(
        stable["promises"],
        json!({ "exclusion": "broken", "loss": "not_checked" })
    );
    let evidence = &result["evidence"]["fenced"];
    let loss = json!({ "outcome": "not_checked", "reason": "no TTL in the record" });
    assert_eq!(evidence["promises"]["loss"], loss);
    assert_eq!(
        evidence["promises"]["exclusion"],
        json!({ "outcome": "broken" })
    );
    assert_eq!(
        evidence["excused"][0]["excuse"]["text"],
        "restart-empty of redis"
    );
    assert_eq!(evidence["violations"][0]["row"], 0);
    assert_eq!(evidence["lock_servers_seen"], true);
}

#[test]
fn a_case_that_never_used_a_lock_has_no_outcome_of_one() {
    let result = result(&run(vec![case("silent", None)]));
    assert!(result["stable"]["cases"]["silent"].get("lock").is_none());
}

#[test]
fn of_a_case_that_differs_from_run_to_run_only_the_outcome_is_stable() {
    let result = result(&run(vec![lock_case("storm", Kept::Kept)]));
    let stable = &result["stable"]["cases"]["storm"];
    assert_eq!(stable["lock"], "kept");
    assert!(stable.get("promises").is_none() && stable.get("excused").is_none());
}

#[test]
fn what_is_not_a_result_is_said() {
    let good = result(&run(vec![case("fenced", None)])).to_string();
    let newer = good.replace("\"schema_version\":1", "\"schema_version\":2");
    let odd = good.replace("\"schema_version\":1", "\"schema_version\":\"one\"");
    let broken = good.replace("\"as_expected\"", "\"splendid\"");
    let elsewhere = good.replace("\"fenced\"", "\"../../x\"");
    let no_verdict = r#"{"schema_version": 1, "stable": {"scenario": {"name": "x", "hash": ""}, "seed": 1, "cases": {}}}"#;
    let cases = [
        (&good[..good.len() / 2], "ends in the middle"),
        ("", "ends in the middle"),
        ("name: yaml", "not JSON"),
        ("{\"a\": 1}", "no schema_version"),
        ("[1, 2]", "no schema_version"),
        (&newer, "newer than this program's 1"),
        (&odd, "no fencepost ever wrote"),
        (&broken, "splendid"),
        (no_verdict, "missing field `verdict`"),
        (&elsewhere, "\"../../x\" is not a name"),
    ];
    for (text, said) in cases {
        let error = read(text.as_bytes()).expect_err(text).to_string();
        assert!(error.contains(said), "{said:?} is not in {error:?}");
    }
}

#[test]
fn fields_of_later_versions_are_passed_over() {
    let mut value = result(&run(vec![case("fenced", None)]));
    value["stable"]["cases"]["fenced"]["mood"] = json!("good");
    value["later"] = json!([1]);
    assert!(read(value.to_string().as_bytes()).is_ok());
}
