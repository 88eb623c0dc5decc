use super::words;
use crate::scenario::draft::Model;
use serde_json::{Value, json};

/// A whole number that may be great.
pub fn many() -> Value {
    json!({
        "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": r"^\d+(_\d+)*[kKMG]?$" }
        ],
        "description": "20000, 20k or 10M"
    })
}

pub fn contend() -> Value {
    let number = json!({ "type": "integer", "minimum": 1 });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "contenders": { "anyOf": [
                number,
                { "type": "array", "minItems": 1, "items": number }
            ] },
            "rate": {
                "anyOf": [
                    { "type": "number", "exclusiveMinimum": 0 },
                    { "type": "string", "pattern": r"^\d+(\.\d+)?(/s)?$" }
                ],
                "description": "arrivals a second, such as 200/s"
            },
            "model": { "enum": words(&Model::ALL) },
            "backlog": { "type": "integer", "minimum": 0 },
            "clients": number,
            "keys": { "$ref": "#/$defs/many" },
            "work": { "$ref": "#/$defs/span" },
            "timeout": { "$ref": "#/$defs/duration" }
        }
    })
}

pub fn keyspace() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "keys": { "$ref": "#/$defs/many" },
            "counters": { "$ref": "#/$defs/duration" },
            "effort": { "type": "integer", "minimum": 1, "maximum": 10 },
            "scan": { "type": "boolean" },
            "watch": { "$ref": "#/$defs/duration" }
        }
    })
}
