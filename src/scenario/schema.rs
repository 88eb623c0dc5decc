use crate::model::{
    Backend, Fence, FenceFloor, Gate, OnLost, ReleaseStyle, ViolationKind, WaitPolicy,
};
use serde_json::{Value, json};

/// The JSON Schema of a scenario file, for editors.
///
/// It covers form; what needs more than one value (names that exist, waits
/// that can come) is said by `fencepost validate`.
pub fn schema() -> Value {
    let range = json!({
        "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": r"^(\d+|\d+\.\.|\.\.\d+|\d+\.\.\d+)$" }
        ],
        "description": "2, 1.., ..3 or 1..3"
    });
    let kinds: serde_json::Map<String, Value> = ViolationKind::ALL
        .iter()
        .map(|kind| (kind.name().to_owned(), json!({ "$ref": "#/$defs/range" })))
        .collect();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A fencepost scenario",
        "type": "object",
        "required": ["name", "about", "topology", "lock", "workers", "cases"],
        "additionalProperties": false,
        "properties": {
            "name": { "$ref": "#/$defs/name" },
            "about": { "type": "string", "description": "the hypothesis, in two sentences a colleague would understand" },
            "topology": { "type": "string", "description": "a file under compose/, without .yml" },
            "deadline": { "$ref": "#/$defs/duration" },
            "lock": {
                "type": "object",
                "required": ["backend", "ttl"],
                "additionalProperties": false,
                "properties": {
                    "backend": { "enum": words(&Backend::ALL) },
                    "ttl": { "$ref": "#/$defs/duration" },
                    "wait": { "enum": words(&WaitPolicy::ALL) },
                    "release": { "enum": words(&ReleaseStyle::ALL) },
                    "fence_floor": { "enum": words(&FenceFloor::ALL) }
                }
            },
            "workers": { "type": "object", "minProperties": 1, "additionalProperties": { "$ref": "#/$defs/worker" } },
            "timeline": { "type": "array", "items": { "$ref": "#/$defs/entry" } },
            "cases": { "type": "object", "minProperties": 1, "additionalProperties": { "$ref": "#/$defs/case" } }
        },
        "$defs": {
            "name": { "type": "string", "pattern": "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$" },
            "duration": { "type": "string", "pattern": r"^\d+(ms|s|m)$" },
            "trigger": { "type": "string", "pattern": r"^[a-z0-9-]+\.[a-z_]+(#[1-9]\d*)?$" },
            "range": range,
            "gate": { "enum": words(&Gate::IN_A_ROUND) },
            "worker": {
                "type": "object",
                "required": ["key"],
                "additionalProperties": false,
                "properties": {
                    "key": { "type": "string", "minLength": 1, "maxLength": 256 },
                    "gate": { "anyOf": [
                        { "$ref": "#/$defs/gate" },
                        { "type": "array", "items": { "$ref": "#/$defs/gate" } }
                    ] },
                    "start": { "$ref": "#/$defs/trigger" },
                    "rounds": { "type": "integer", "minimum": 1 },
                    "work": { "$ref": "#/$defs/duration" },
                    "pause": { "$ref": "#/$defs/duration" },
                    "on_lost": { "enum": words(&OnLost::ALL) },
                    "renew": { "type": "boolean" }
                }
            },
            "entry": {
                "type": "object",
                "required": ["when", "do"],
                "additionalProperties": false,
                "properties": {
                    "when": { "$ref": "#/$defs/trigger" },
                    "after": { "$ref": "#/$defs/duration" },
                    "do": { "oneOf": [
                        {
                            "type": "object",
                            "required": ["pause"],
                            "additionalProperties": false,
                            "properties": {
                                "pause": { "$ref": "#/$defs/name" },
                                "for": { "$ref": "#/$defs/duration" },
                                "longer_than": { "anyOf": [{ "const": "ttl" }, { "$ref": "#/$defs/duration" }] }
                            }
                        },
                        {
                            "type": "object",
                            "required": ["resume"],
                            "additionalProperties": false,
                            "properties": { "resume": { "$ref": "#/$defs/name" } }
                        }
                    ] }
                }
            },
            "case": {
                "type": "object",
                "required": ["fence", "expect"],
                "additionalProperties": false,
                "properties": {
                    "fence": { "enum": words(&Fence::ALL) },
                    "expect": {
                        "type": "object",
                        "minProperties": 1,
                        "additionalProperties": false,
                        "properties": {
                            "violations": { "anyOf": [
                                { "$ref": "#/$defs/range" },
                                { "type": "object", "additionalProperties": false, "properties": kinds }
                            ] },
                            "accepted_writers": { "$ref": "#/$defs/range" },
                            "accepted_writes": { "$ref": "#/$defs/range" },
                            "stale_rejections": { "$ref": "#/$defs/range" },
                            "rightful_rejections": { "$ref": "#/$defs/range" },
                            "overlaps": { "$ref": "#/$defs/range" }
                        }
                    }
                }
            }
        }
    })
}

fn words(all: &[impl ToString]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}
