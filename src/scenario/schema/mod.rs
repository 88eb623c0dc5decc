mod expect;
mod load;
mod step;

use super::draft::{Kind, MOST_COPIES, MOST_NESTED, MOST_REPEATS};
use crate::model::{
    Backend, Fence, FenceFloor, Gate, KeyTemplate, OnLost, ReleaseStyle, WaitPolicy,
};
use serde_json::{Map, Value, json};

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
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A fencepost scenario",
        "type": "object",
        "required": ["name", "about", "cases"],
        "additionalProperties": false,
        "properties": with_setup([
            ("name", json!({ "$ref": "#/$defs/name" })),
            ("about", json!({ "type": "string", "description": "the hypothesis, in two sentences a colleague would understand" })),
            ("kind", json!({ "enum": words(&Kind::ALL), "description": "fault where nothing is said" })),
            ("cases", json!({ "type": "object", "minProperties": 1, "additionalProperties": { "$ref": "#/$defs/case" } })),
        ]),
        "$defs": {
            "name": { "type": "string", "pattern": "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$" },
            "duration": { "type": "string", "pattern": r"^\d+(ms|s|m)$" },
            "span": { "type": "string", "pattern": r"^\d+(ms|s|m)(\.\.\d+(ms|s|m))?$", "description": "2s, or bounds that the seed draws from: 500ms..2s" },
            "trigger": { "type": "string", "pattern": r"^[a-z0-9-]+\.[a-z_]+(#[1-9]\d*)?$" },
            "range": range,
            "length": { "type": "string", "pattern": r"^(\d+(ms|s|m)\.\.(\d+(ms|s|m))?|\.\.\d+(ms|s|m))$", "description": "8s.., ..5s or 1s..4s" },
            "gate": { "enum": words(&Gate::IN_A_ROUND) },
            "lock": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "backend": { "enum": words(&Backend::ALL) },
                    "ttl": { "$ref": "#/$defs/duration" },
                    "wait": { "enum": words(&WaitPolicy::ALL) },
                    "release": { "enum": words(&ReleaseStyle::ALL) },
                    "fence_floor": { "enum": words(&FenceFloor::ALL) },
                    "key": {
                        "type": "string",
                        "maxLength": KeyTemplate::MOST_BYTES,
                        "pattern": r"\{key\}",
                        "description": "how another library names the key of its lock: /locks/{key}"
                    }
                }
            },
            "worker": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "key": { "type": "string", "minLength": 1, "maxLength": 256 },
                    "keys": { "type": "integer", "minimum": 1, "maximum": u16::MAX },
                    "copies": { "type": "integer", "minimum": 1, "maximum": MOST_COPIES },
                    "lock": { "$ref": "#/$defs/lock" },
                    "gate": { "anyOf": [
                        { "$ref": "#/$defs/gate" },
                        { "type": "array", "items": { "$ref": "#/$defs/gate" } }
                    ] },
                    "start": { "$ref": "#/$defs/trigger" },
                    "rounds": { "type": "integer", "minimum": 1 },
                    "work": { "$ref": "#/$defs/duration" },
                    "pause": { "$ref": "#/$defs/duration" },
                    "on_lost": { "enum": words(&OnLost::ALL) },
                    "renew": { "type": "boolean" },
                    "nested": { "type": "integer", "minimum": 1, "maximum": MOST_NESTED },
                    "reads": { "type": "boolean" }
                }
            },
            "node": { "anyOf": [
                { "$ref": "#/$defs/name" },
                {
                    "type": "object",
                    "required": ["one_of"],
                    "additionalProperties": false,
                    "properties": {
                        "one_of": { "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/name" } }
                    }
                }
            ] },
            "link": { "type": "string", "pattern": r"^[a-z0-9-]*[a-z0-9] *-> *[a-z0-9-]+$", "description": "a -> redis-1, a -> any" },
            "entry": {
                "type": "object",
                "required": ["do"],
                "anyOf": [{ "required": ["when"] }, { "required": ["after"] }],
                "additionalProperties": false,
                "properties": {
                    "when": { "$ref": "#/$defs/trigger" },
                    "name": { "$ref": "#/$defs/name" },
                    "after": { "$ref": "#/$defs/span" },
                    "repeat": { "anyOf": [
                        { "type": "integer", "minimum": 1, "maximum": MOST_REPEATS },
                        { "const": "throughout" }
                    ] },
                    "do": { "anyOf": [
                        { "$ref": "#/$defs/step" },
                        { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/step" } }
                    ] }
                }
            },
            "many": load::many(),
            "contend": load::contend(),
            "keyspace": load::keyspace(),
            "step": { "oneOf": step::alternatives() },
            "case": {
                "type": "object",
                "additionalProperties": false,
                "properties": with_setup([])
            },
            "expect": expect::expectations()
        }
    })
}

/// What a scenario says for all its cases, and a case for itself: these fields
/// beside `own`. What has to be there may come from either.
fn with_setup<const N: usize>(own: [(&str, Value); N]) -> Map<String, Value> {
    let setup = [
        (
            "topology",
            json!({ "type": "string", "description": "a file under compose/, without .yml" }),
        ),
        (
            "worker",
            json!({
                "type": "object",
                "required": ["image"],
                "additionalProperties": false,
                "properties": {
                    "image": { "type": "string", "description": "a folder with a Dockerfile, or an image with its tag" }
                }
            }),
        ),
        ("lock", json!({ "$ref": "#/$defs/lock" })),
        ("duration", json!({ "$ref": "#/$defs/duration" })),
        ("deadline", json!({ "$ref": "#/$defs/duration" })),
        (
            "workers",
            json!({ "type": "object", "minProperties": 1, "additionalProperties": { "$ref": "#/$defs/worker" } }),
        ),
        (
            "timeline",
            json!({ "type": "array", "items": { "$ref": "#/$defs/entry" } }),
        ),
        ("contend", json!({ "$ref": "#/$defs/contend" })),
        ("keyspace", json!({ "$ref": "#/$defs/keyspace" })),
        ("fence", json!({ "enum": words(&Fence::ALL) })),
        ("expect", json!({ "$ref": "#/$defs/expect" })),
    ];
    let all = own.into_iter().chain(setup);
    all.map(|(name, form)| (name.to_owned(), form)).collect()
}

fn words(all: &[impl ToString]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}
