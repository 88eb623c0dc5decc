mod step;

use super::draft::{
    CaseFields, DraftContend, DraftKeyspace, DraftLock, HeadFields, MOST_REPEATS, WorkerFields,
    expectations,
};
use super::fields::{object, properties};
use super::form::words;
use crate::model::Gate;
use serde_json::{Value, json};

/// Returns the JSON Schema of a scenario file, for editors.
///
/// It covers the form. `fencepost validate` checks everything that needs more than one value, such
/// as names that exist and waits that can end.
pub fn schema() -> Value {
    let range = json!({
        "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "string", "pattern": r"^(\d+|\d+\.\.|\.\.\d+|\d+\.\.\d+)$" }
        ],
        "description": "2, 1.., ..3 or 1..3"
    });
    let mut expect = object(expectations());
    expect["minProperties"] = 1.into();
    let head = HeadFields::table();
    let required = head.iter().filter(|field| field.is_required);
    let required: Vec<&str> = required.map(|field| field.name).collect();
    let mut all = properties(HeadFields::table());
    all.extend(properties(CaseFields::table()));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A fencepost scenario",
        "type": "object",
        "required": required,
        "additionalProperties": false,
        "properties": all,
        "$defs": {
            "name": { "type": "string", "pattern": "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$" },
            "duration": { "type": "string", "pattern": r"^\d+(ms|s|m)$" },
            "span": { "type": "string", "pattern": r"^\d+(ms|s|m)(\.\.\d+(ms|s|m))?$", "description": "2s, or bounds that the seed draws from: 500ms..2s" },
            "trigger": { "type": "string", "pattern": r"^[a-z0-9-]+\.[a-z_]+(#[1-9]\d*)?$" },
            "range": range,
            "length": { "type": "string", "pattern": r"^(\d+(ms|s|m)\.\.(\d+(ms|s|m))?|\.\.\d+(ms|s|m))$", "description": "8s.., ..5s or 1s..4s" },
            "gate": { "enum": words(Gate::IN_A_ROUND) },
            "lock": object(DraftLock::table()),
            "worker": object(WorkerFields::table()),
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
            "many": {
                "anyOf": [
                    { "type": "integer", "minimum": 1 },
                    { "type": "string", "pattern": r"^\d+(_\d+)*[kKMG]?$" }
                ],
                "description": "20000, 20k or 10M"
            },
            "contend": object(DraftContend::table()),
            "keyspace": object(DraftKeyspace::table()),
            "step": { "oneOf": step::alternatives() },
            "case": object(CaseFields::table()),
            "expect": expect
        }
    })
}
