//! The JSON Schema of `result.json`: what readers can rely on. Later versions of this
//! program may add fields, so none of it is closed.

use super::json::SCHEMA_VERSION;
use crate::model::{
    ClockName, Counts, FaultKind, FaultStage, Fence, Kept, LockOutcome, Outcome, Promise,
    ViolationKind,
};
use serde_json::{Value, json};

pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": format!("urn:fencepost:result:{SCHEMA_VERSION}"),
        "title": "A result of fencepost",
        "type": "object",
        "required": ["schema_version", "stable", "evidence", "measurements", "environment"],
        "properties": {
            "schema_version": { "const": SCHEMA_VERSION },
            "stable": { "$ref": "#/$defs/stable" },
            "evidence": { "type": "object", "additionalProperties": { "$ref": "#/$defs/evidence" } },
            "measurements": { "type": "object", "additionalProperties": { "$ref": "#/$defs/measurements" } },
            "environment": { "type": "object", "required": ["fencepost"], "additionalProperties": { "type": "string" } }
        },
        "$defs": {
            "stable": stable(),
            "case": case(),
            "finding": finding(),
            "evidence": evidence(),
            "measurements": measurements(),
            "outcome": { "enum": [Outcome::AsExpected, Outcome::NotAsExpected, Outcome::Inconclusive] },
            "lock": { "enum": LockOutcome::ALL },
            "kept": { "enum": kept() },
            "violation": violation(),
            "violation_kind": { "enum": ViolationKind::ALL },
            "fault": { "enum": FaultKind::ALL },
            "stage": { "enum": FaultStage::ALL },
            "count": { "type": "integer", "minimum": 0 },
            "counts": { "type": "object", "required": counts(), "additionalProperties": { "$ref": "#/$defs/count" } }
        }
    })
}

fn stable() -> Value {
    json!({
        "type": "object",
        "description": "the same in every good run",
        "required": ["scenario", "seed", "settings", "mutant", "verdict", "cases", "unfinished"],
        "properties": {
            "scenario": {
                "type": "object",
                "required": ["name", "hash"],
                "properties": { "name": { "type": "string" }, "hash": { "type": "string" } }
            },
            "seed": { "$ref": "#/$defs/count" },
            "settings": { "type": "array", "items": { "type": "string" } },
            "mutant": { "anyOf": [{ "type": "string" }, { "const": null }] },
            "verdict": { "$ref": "#/$defs/outcome" },
            "cases": { "type": "object", "additionalProperties": { "$ref": "#/$defs/case" } },
            "unfinished": { "type": "array", "items": { "type": "string" } }
        }
    })
}

fn case() -> Value {
    json!({
        "type": "object",
        "description": "how much happened is there only where it is the same in every good run",
        "required": ["fence", "verdict", "findings", "doubts"],
        "properties": {
            "fence": { "enum": Fence::ALL },
            "verdict": { "$ref": "#/$defs/outcome" },
            "lock": { "$ref": "#/$defs/lock" },
            "findings": { "type": "array", "items": { "$ref": "#/$defs/finding" } },
            "doubts": { "type": "array", "items": { "type": "string" } },
            "violations": by_kind(),
            "excused": by_kind(),
            "promises": by_promise(&json!({ "$ref": "#/$defs/kept" })),
            "counts": { "$ref": "#/$defs/counts" },
            "explanation": { "type": "array", "items": {
                "type": "object",
                "required": ["key", "violations", "steps"],
                "properties": {
                    "key": { "type": "string" },
                    "violations": { "type": "array", "items": { "$ref": "#/$defs/violation_kind" } },
                    "steps": { "type": "array", "items": { "type": "string" } }
                }
            } },
            "last_writer": { "type": "object", "additionalProperties": { "type": "string" } },
            "faults": { "type": "array", "items": {
                "type": "object",
                "required": ["fault", "target", "came_to"],
                "properties": {
                    "fault": { "$ref": "#/$defs/fault" },
                    "target": { "type": "string" },
                    "came_to": { "$ref": "#/$defs/stage" }
                }
            } }
        }
    })
}

/// Violations by kind; one that did not come is absent.
fn by_kind() -> Value {
    let kinds = ViolationKind::ALL.map(|kind| {
        let count = json!({ "type": "integer", "minimum": 1 });
        (kind.name().to_owned(), count)
    });
    json!({ "type": "object", "properties": Value::Object(kinds.into_iter().collect()) })
}

fn finding() -> Value {
    json!({
        "type": "object",
        "required": ["what", "expected", "held", "outcome"],
        "properties": {
            "what": { "type": "string" },
            "expected": { "type": "string" },
            "held": { "type": "boolean" },
            "found": { "$ref": "#/$defs/count" },
            "outcome": { "$ref": "#/$defs/outcome" }
        }
    })
}

fn evidence() -> Value {
    json!({
        "type": "object",
        "description": "of one run: real tokens, times and owners",
        "required": ["counts", "violations", "overlaps", "explanation", "faults", "started_ns"],
        "properties": {
            "findings": { "type": "object", "additionalProperties": { "type": "string" } },
            "counts": { "$ref": "#/$defs/counts" },
            "violations": { "type": "array", "items": { "$ref": "#/$defs/violation" } },
            "excused": { "type": "array", "items": { "$ref": "#/$defs/violation" } },
            "promises": by_promise(&json!({
                "type": "object",
                "required": ["outcome"],
                "properties": {
                    "outcome": { "$ref": "#/$defs/kept" },
                    "reason": { "type": "string" }
                }
            })),
            "lock_servers_seen": { "type": "boolean" },
            "lacks": { "type": "array", "items": { "type": "string" } },
            "overlaps": { "type": "array", "items": {
                "type": "object",
                "required": ["key", "first", "second", "from_ns", "to_ns", "definite"],
                "properties": {
                    "key": { "type": "string" },
                    "first": { "type": "string" },
                    "second": { "type": "string" },
                    "from_ns": { "$ref": "#/$defs/count" },
                    "to_ns": { "$ref": "#/$defs/count" },
                    "definite": { "type": "boolean" }
                }
            } },
            "explanation": { "type": "array", "items": {
                "type": "object",
                "required": ["row", "steps"],
                "properties": {
                    "row": { "$ref": "#/$defs/count" },
                    "title": { "type": "string" },
                    "steps": { "type": "array", "items": {
                        "type": "object",
                        "required": ["at_ms", "what"],
                        "properties": { "at_ms": { "type": "number" }, "what": { "type": "string" } }
                    } }
                }
            } },
            "values": { "type": "object" },
            "resource_stale_token_rejections_total": { "anyOf": [{ "$ref": "#/$defs/count" }, { "const": null }] },
            "faults": { "type": "array", "items": {
                "type": "object",
                "required": ["at_ns", "id", "fault", "target", "stage"],
                "properties": {
                    "at_ns": { "$ref": "#/$defs/count" },
                    "id": { "$ref": "#/$defs/count" },
                    "fault": { "$ref": "#/$defs/fault" },
                    "target": { "type": "string" },
                    "alias": { "type": "string" },
                    "stage": { "$ref": "#/$defs/stage" },
                    "detail": { "type": "string" },
                    "longer_than_ms": { "$ref": "#/$defs/count" },
                    "for_ms": { "$ref": "#/$defs/count" },
                    "clock": { "enum": ClockName::ALL },
                    "by_ms": { "type": "integer" },
                    "ppm": { "type": "integer" }
                }
            } },
            "started_ns": { "$ref": "#/$defs/count" }
        }
    })
}

/// Milliseconds by phase; and what a load measured.
fn measurements() -> Value {
    json!({
        "type": "object",
        "properties": { "load": {
            "type": "object",
            "properties": {
                "steps": { "type": "array", "items": {
                    "type": "object",
                    "required": ["contenders", "arrivals", "acquisitions", "timeouts", "acquire"]
                } },
                "keyspace": { "anyOf": [{ "type": "object" }, { "const": null }] },
                "partial": { "anyOf": [{ "type": "string" }, { "const": null }] }
            }
        } },
        "additionalProperties": { "$ref": "#/$defs/count" }
    })
}

/// A broken rule; where no write broke it, its row is 0.
fn violation() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "key", "row", "detail"],
        "properties": {
            "kind": { "$ref": "#/$defs/violation_kind" },
            "key": { "type": "string" },
            "row": { "$ref": "#/$defs/count" },
            "against": { "$ref": "#/$defs/count" },
            "at_ns": { "$ref": "#/$defs/count" },
            "workers": { "type": "array", "items": { "type": "string" } },
            "detail": { "type": "string" },
            "excuse": {
                "type": "object",
                "required": ["text"],
                "properties": {
                    "fault": { "$ref": "#/$defs/count" },
                    "text": { "type": "string" }
                }
            }
        }
    })
}

/// Something about each promise of a lock, as far as there is anything to say.
fn by_promise(about: &Value) -> Value {
    let promises = Promise::ALL.map(|promise| (promise.name().to_owned(), about.clone()));
    json!({ "type": "object", "properties": Value::Object(promises.into_iter().collect()) })
}

/// What can become of a promise.
fn kept() -> [&'static str; 6] {
    let all = [
        Kept::Kept,
        Kept::Broken,
        Kept::Excused,
        Kept::NotTested,
        Kept::NotChecked(String::new()),
        Kept::NotOffered,
    ];
    all.map(|kept| kept.word())
}

/// The names of what every program has counted.
fn counts() -> Vec<String> {
    let counts = json!(Counts::default());
    let names = counts
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| name.clone());
    // What may have overlapped is in the evidence alone, and the others came later.
    let not_always = ["possible_overlaps", "contended", "excused"];
    names
        .filter(|name| !not_always.contains(&name.as_str()))
        .collect()
}
