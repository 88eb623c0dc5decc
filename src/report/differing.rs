//! Compares a judgement with a `result.json`, field by field.

use super::document::{ADDED, BY_NAME};
use super::*;

/// Returns the places at which the record differs. Fields that this program does not write are
/// ignored, as the contract requires, and so are fields that the recording program did not write.
pub fn differing(ours: &Value, recorded: &Value) -> Vec<String> {
    let mut places = Vec::new();
    compare("", false, ours, recorded, &mut places);
    places
}

fn compare(place: &str, by_name: bool, ours: &Value, recorded: &Value, places: &mut Vec<String>) {
    let inside = |name: &str| match place {
        "" => name.to_owned(),
        place => format!("{place}.{name}"),
    };
    match (ours, recorded) {
        (Value::Object(ours), Value::Object(recorded)) => {
            for (name, value) in ours {
                let in_names = by_name;
                let by_name = BY_NAME.contains(&name.as_str());
                match recorded.get(name) {
                    None if !in_names && ADDED.contains(&name.as_str()) => {}
                    said => {
                        let said = said.unwrap_or(&Value::Null);
                        compare(&inside(name), by_name, value, said, places);
                    }
                }
            }
            let gone = recorded.keys().filter(|name| !ours.contains_key(*name));
            let gone = gone.filter(|_| by_name).map(|name| inside(name));
            places.extend(gone);
        }
        (Value::Array(ours), Value::Array(recorded)) if ours.len() == recorded.len() => {
            for (n, (ours, recorded)) in ours.iter().zip(recorded).enumerate() {
                compare(&inside(&n.to_string()), false, ours, recorded, places);
            }
        }
        (ours, recorded) if ours == recorded => {}
        _ => places.push(place.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_program_adds_is_passed_over() {
        let ours = json!({ "cases": { "a": { "verdict": "as_expected", "faults": [{ "fault": "pause" }] } } });
        let mut later = ours.clone();
        later["tags"] = json!(["x"]);
        later["cases"]["a"]["cost"] = json!(1);
        later["cases"]["a"]["faults"][0]["why"] = json!("so");
        assert_eq!(differing(&ours, &later), [""; 0]);
    }

    #[test]
    fn what_an_earlier_program_did_not_write_is_passed_over() {
        let ours = json!({ "cases": { "a": { "lock": "broken", "promises": {}, "counts": { "contended": 3 } } } });
        let earlier = json!({ "cases": { "a": { "counts": {} } } });
        assert_eq!(differing(&ours, &earlier), [""; 0]);
        let mut other = ours.clone();
        other["cases"]["a"]["lock"] = json!("kept");
        other["cases"]["a"]["promises"] = json!({ "exclusion": "kept" });
        let places = ["cases.a.lock", "cases.a.promises.exclusion"];
        assert_eq!(differing(&ours, &other), places);
    }

    #[test]
    fn what_differs_is_named() {
        let ours = json!({
            "seed": 1,
            "mutant": null,
            "cases": { "a": { "verdict": "as_expected", "violations": {}, "doubts": [] } },
        });
        let mut other = ours.clone();
        other["mutant"] = json!("x");
        other["cases"]["a"]["violations"] = json!({ "stale_write": 1 });
        other["cases"]["a"]["doubts"] = json!(["gap"]);
        other["cases"]["b"] = json!({});
        let places = [
            "cases.a.doubts",
            "cases.a.violations.stale_write",
            "cases.b",
            "mutant",
        ];
        assert_eq!(differing(&ours, &other), places);
    }
}
